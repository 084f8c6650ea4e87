//! Generated chat prompts: ordinary English of the requested length.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SENTENCES: &[&str] = &[
    "Hello, could you help me write a short email to my landlord about the broken heating in my apartment?",
    "I would like it to sound polite but firm, and to mention that the problem has lasted for two weeks now.",
    "The quarterly report shows that revenue grew by 12% in the third quarter, mainly because of new customers in Europe.",
    "Please summarise the following article in three bullet points and keep the tone neutral.",
    "Our team is looking for a way to reduce the time that builds take, and we have already tried caching dependencies.",
    "What is the difference between a mutex and a semaphore, and when should I use one instead of the other?",
    "My daughter is learning about the solar system at school; can you explain why Pluto is no longer a planet?",
    "The function returns a list of tuples, each of which contains the name and the score of a player.",
    "I am planning a trip to Portugal in May and would love some recommendations for quiet towns near the coast.",
    "Here is the paragraph that I want you to improve: it is too long, it repeats itself, and it never gets to the point.",
    "Could you translate this sentence into German and explain the grammar step by step?",
    "The patient reported mild headaches for several days, but no fever and no other symptoms.",
    "Write a haiku about autumn leaves, and then one about the sound of rain on a tin roof.",
    "When I run the script, it prints a warning about a deprecated parameter, and then it stops without an error message.",
    "Thanks, that works! One more question: how do I sort the results by date in descending order?",
    "We met on 14 March 2024 and agreed that the second phase would start in week 37, with a budget of 45,000 euros.",
    "If the user forgets the password, the page should show a link; the API key stays in the vault.",
    "Act 2 opens in the kitchen, where the grandmother tells the children to ignore the noise from the street.",
    "She said that the new system is easier to use than the previous one, but the training took longer than planned.",
    "Give me five names for a bakery that sells sourdough bread, croissants and seasonal cakes.",
];

/// Returns prompts of `length` bytes; the same for the same `seed`.
pub fn prompts(count: usize, length: usize, seed: u64) -> Vec<String> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut prompt = || {
        let mut text = String::with_capacity(length + 128);
        while text.len() < length {
            text.push_str(SENTENCES[random.random_range(0..SENTENCES.len())]);
            text.push(' ');
        }
        text.truncate(length);
        text
    };
    (0..count).map(|_| prompt()).collect()
}
