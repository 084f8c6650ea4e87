//! How many tokens a prompt has, where its provider cannot be asked.

use proofgate_base::answer::{ResponseOptions, write_response};
use proofgate_base::client::AfterExchange;
use proofgate_ledger::record::Outcome;
use proofgate_providers::Dialect;
use proofgate_stages::Stage;

use crate::open_exchange::OpenExchange;
use crate::reply::Reply;

/// The field of an answer that the gateway has estimated.
const ESTIMATED_HEADER: (&str, &str) = ("x-proofgate-estimated", "true");

/// Answers an exchange whose provider has told no number: with `tokens`, the estimate that limits reserve by, which a field of the
/// answer names as one.
pub async fn send_estimate(tokens: u64, reply: &mut Reply<'_>, mut open: Box<OpenExchange>) -> AfterExchange {
    let json = estimate_json(reply.dialect, tokens);
    open.relay(json.as_bytes());
    open.wait_until_stored().await;
    let completion = open.finish(Outcome::Complete, 200, None);
    if !open.wait_until_written(completion, Stage::CompletionRecord).await {
        return AfterExchange::Close;
    }
    reply.buffers.head.clear();
    let options = ResponseOptions {
        close: reply.close,
        head_only: false,
        extra: reply.extra,
        family: reply.family(),
    };
    write_response(
        200,
        "application/json",
        json.as_bytes(),
        open.id.as_str(),
        [ESTIMATED_HEADER],
        options,
        &mut reply.buffers.head,
    );
    let sent = reply.client.send(&reply.buffers.head).await;
    open.mark_sent();
    match sent {
        Ok(()) if reply.close => AfterExchange::Linger,
        Ok(()) => AfterExchange::Continue,
        Err(_) => AfterExchange::Close,
    }
}

/// The answer of the API that a dialect belongs to (Anthropic, "Count tokens in a Message"; Google, `countTokens`;
/// OpenAI, "Get input token counts").
fn estimate_json(dialect: Dialect, tokens: u64) -> String {
    match dialect {
        Dialect::GeminiTokens => format!(r#"{{"totalTokens":{tokens}}}"#),
        Dialect::ResponseTokens => format!(r#"{{"object":"response.input_tokens","input_tokens":{tokens}}}"#),
        _ => format!(r#"{{"input_tokens":{tokens}}}"#),
    }
}
