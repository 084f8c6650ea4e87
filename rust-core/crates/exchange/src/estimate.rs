//! Estimates of a prompt's tokens, for providers that cannot count them.

use proofgate_base::client::ConnectionAction;
use proofgate_base::error_response::{ResponseOptions, write_response};
use proofgate_ledger::record::Outcome;
use proofgate_providers::Dialect;
use proofgate_stages::Stage;

use crate::open_exchange::OpenExchange;
use crate::reply::Reply;

/// The header field of an estimated response.
const ESTIMATED_HEADER: (&str, &str) = ("x-proofgate-estimated", "true");

/// Answers an exchange whose provider did not count the tokens. The response contains `tokens`,
/// which is also the estimate for limits, and a header field that marks it as an estimate.
pub async fn send_estimate(
    tokens: u64,
    reply: &mut Reply<'_>,
    mut open: Box<OpenExchange>,
) -> ConnectionAction {
    let json = estimate_json(reply.dialect, tokens);
    open.relay(json.as_bytes());
    open.wait_until_stored().await;
    let completion = open.finish(Outcome::Complete, 200, None);
    if !open.wait_until_written(completion, Stage::CompletionRecord).await {
        return ConnectionAction::Close;
    }
    reply.buffers.head.clear();
    let options = ResponseOptions {
        close: reply.close,
        head_only: false,
        extra_headers: reply.extra_headers,
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
        Ok(()) if reply.close => ConnectionAction::Linger,
        Ok(()) => ConnectionAction::Continue,
        Err(_) => ConnectionAction::Close,
    }
}

/// Returns the response body in the format of the dialect's API (Anthropic, "Count tokens in a
/// Message"; Google, `countTokens`; OpenAI, "Get input token counts").
fn estimate_json(dialect: Dialect, tokens: u64) -> String {
    match dialect {
        Dialect::GeminiTokens => format!(r#"{{"totalTokens":{tokens}}}"#),
        Dialect::ResponseTokens => format!(r#"{{"object":"response.input_tokens","input_tokens":{tokens}}}"#),
        _ => format!(r#"{{"input_tokens":{tokens}}}"#),
    }
}
