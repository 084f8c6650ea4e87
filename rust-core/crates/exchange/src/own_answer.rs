//! Exchanges that end with an answer of the gateway's own.

use proofgate_base::answer::Answer;
use proofgate_base::client::AfterExchange;
use proofgate_ledger::record::{Outcome, Usage};
use proofgate_stages::Stage;

use crate::open_exchange::OpenExchange;
use crate::reply::{Reply, send_answer};

/// Ends an exchange with an answer of our own, which leaves only after its completion is written.
pub(crate) async fn finish_with_answer(
    reply: &mut Reply<'_>,
    mut open: Box<OpenExchange>,
    outcome: Outcome,
    answer: Answer<'_>,
    usage: Option<Usage>,
) -> AfterExchange {
    open.error = Some(answer.code);
    open.respond(&answer.json(reply.family()));
    let id = open.id;
    open.store().await;
    let completion = open.end(outcome, answer.status, usage);
    if !open.written(completion, Stage::CompletionRecord).await {
        return AfterExchange::Close;
    }
    let after = send_answer(reply, &answer, id.as_str()).await;
    open.sent();
    after
}
