//! What is answered without a key: questions of browsers, and of clients whether anything is here.

use proofgate_base::answer::{AnswerOptions, write_response};
use proofgate_base::client::AfterExchange;
use proofgate_base::routing::Routed;
use proofgate_providers::Family;

use super::Connection;
use super::asked_by_anyone::AskedByAnyone;
use crate::cors;

impl Connection {
    /// Tells a browser what its page may send, or a client that something answers. A load balancer could not route it, because it
    /// carries no key: the request that follows needs a connection of its own.
    pub(super) async fn answer_anyone(
        &mut self,
        asked: AskedByAnyone,
        length: usize,
        keep_alive: bool,
        now: std::time::Instant,
    ) -> AfterExchange {
        let close = !keep_alive || self.peer.routed != Routed::Anyone || self.is_leaving(now);
        let cors = self.catalog.terms.cors.as_ref();
        let max_age = cors.map_or(0, |cors| cors.max_age_seconds).to_string();
        let (status, body, fields) = match asked {
            AskedByAnyone::Preflight => (204, &b""[..], cors::preflight_fields(&max_age).to_vec()),
            AskedByAnyone::Probe { options: true, .. } => {
                (204, &b""[..], vec![("allow", "GET, HEAD, OPTIONS")])
            }
            AskedByAnyone::Probe { .. } => (200, &br#"{"status":"ok"}"#[..], Vec::new()),
        };
        let id = self.gateway.request_id(self.gateway.clock.unix_micros(now));
        let options = AnswerOptions {
            close,
            head_only: matches!(asked, AskedByAnyone::Probe { head_only: true, .. }),
            extra: &self.extra,
            family: Family::default(),
        };
        self.gateway.buffers.spare.lend(&mut self.buffers.head);
        let head = &mut self.buffers.head;
        head.clear();
        write_response(
            status,
            "application/json",
            body,
            id.as_str(),
            fields,
            options,
            head,
        );
        self.client.input.consume(length);
        self.send_head(close).await
    }
}
