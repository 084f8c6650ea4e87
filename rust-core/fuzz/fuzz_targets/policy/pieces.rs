//! One text under two evaluations, at once and in pieces, that must find the same.

use proofgate_policy::{Budget, Engine, Match, Profile, Scope, Scratch, StreamScan};

/// Compiled rules, and room that every input uses again.
pub struct Evaluation {
    engine: Engine,
    profile: Profile,
    scratch: Scratch,
    whole: Vec<Match>,
    parts: Vec<Match>,
}

impl Evaluation {
    /// Of rules that all deny: only they hold an answer back.
    pub fn of(engine: Engine) -> Self {
        let profile = engine.profile(None).expect("it changes nothing");
        Self {
            engine,
            profile,
            scratch: Scratch::new(),
            whole: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The first byte of `input` chooses the scope and seeds the pieces, the rest is the text.
    pub fn compare(&mut self, input: &[u8]) {
        let Some((&seed, bytes)) = input.split_first() else {
            return;
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        let scope = match seed % 2 {
            0 => Scope::User,
            _ => Scope::Response,
        };
        self.scan_whole(scope, text);
        self.scan_parts(scope, text, seed);
        for matches in [&mut self.whole, &mut self.parts] {
            matches.sort_unstable();
            matches.dedup();
        }
        assert_eq!(self.parts, self.whole);
    }

    fn scan_whole(&mut self, scope: Scope, text: &str) {
        let Self {
            engine,
            profile,
            scratch,
            whole,
            ..
        } = self;
        whole.clear();
        engine
            .scan(profile, scope, text, &mut Budget::unlimited(), scratch, whole)
            .expect("no rule fails");
        for found in &*whole {
            assert!(found.start <= found.end && text.get(found.start..found.end).is_some());
        }
    }

    /// Checks besides that no match touches what was cleared before it was reported.
    fn scan_parts(&mut self, scope: Scope, text: &str, seed: u8) {
        let Self {
            engine,
            profile,
            scratch,
            parts,
            ..
        } = self;
        let mut never = Budget::unlimited();
        parts.clear();
        let mut stream = StreamScan::new();
        let mut state = u32::from(seed) | 1 << 8;
        let (mut at, mut cleared) = (0, 0);
        while at < text.len() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut end = (at + 1 + (state >> 24) as usize % 32).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            let known = parts.len();
            let now = stream
                .push(engine, profile, scope, &text[at..end], &mut never, scratch, parts)
                .expect("no rule fails");
            assert!(cleared <= now && now <= end);
            assert!(parts[known..].iter().all(|found| found.start >= cleared));
            (at, cleared) = (end, now);
        }
        let known = parts.len();
        stream
            .finish(engine, profile, scope, &mut never, scratch, parts)
            .expect("no rule fails");
        assert!(parts[known..].iter().all(|found| found.start >= cleared));
    }
}
