//! Exchanges that end with a response that the gateway itself creates.

use proofgate_base::client::ConnectionAction;
use proofgate_base::error_response::ErrorResponse;
use proofgate_ledger::record::{Outcome, Usage};
use proofgate_stages::Stage;

use crate::open_exchange::OpenExchange;
use crate::reply::{Reply, send_error};

/// Ends an exchange with a response that the gateway itself creates. It is sent only after the
/// completion is written.
pub(crate) async fn finish_with_response(
    reply: &mut Reply<'_>,
    mut open: Box<OpenExchange>,
    outcome: Outcome,
    answer: ErrorResponse<'_>,
    usage: Option<Usage>,
) -> ConnectionAction {
    open.error = Some(answer.code);
    open.respond(&answer.to_json(reply.family()));
    let id = open.id;
    open.wait_until_stored().await;
    let completion = open.finish(outcome, answer.status, usage);
    if !open.wait_until_written(completion, Stage::CompletionRecord).await {
        return ConnectionAction::Close;
    }
    let after = send_error(reply, &answer, id.as_str()).await;
    open.mark_sent();
    after
}
