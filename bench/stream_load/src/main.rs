//! `stream-load upstream` and `stream-load client`: see the library.

use std::process::ExitCode;

use stream_load::arguments::Arguments;
use stream_load::{agents, client, upstream};

const USAGE: &str = "\
stream-load upstream --listen 127.0.0.1:0 --interval-us N --tokens N
                     --latency-us N --completion FILE --message FILE
    FILEs are the JSON of what is no stream, in OpenAI's words and in Anthropic's; prints `listening ADDRESS`, then
    serves until it is ended
stream-load client --target ADDRESS --path PATH --body FILE [--header 'Name: value']...
                   --streams N --tokens N --ramp-ms N --window-ms N
    prints `window opens`, `window closes`, and one line of JSON
stream-load agents --target ADDRESS --path PATH --session FILE [--header 'Name: value']...
                   --play first|next|whole --connections N --window-ms N
    FILE is a session, a turn in each line behind the first; prints as the client does";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let done = Arguments::parse(words).and_then(|arguments| match command.as_str() {
        "upstream" => upstream::run(&arguments),
        "client" => client::run(&arguments),
        "agents" => agents::run(&arguments),
        _ => Err(USAGE.to_owned()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
