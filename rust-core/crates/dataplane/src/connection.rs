use std::ops::Range;
use std::rc::Rc;

use proofgate_auth::KeyHash;
use proofgate_wire::{
    BodyDecoder, HeadScanner, Limits, Method, Refusal, RequestFraming, RequestHead, encode,
    parse_proxy_header, parse_request,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::answer::Answer;
use crate::client::Client;
use crate::exchange::{self, ChatCall};
use crate::gateway::Gateway;
use crate::lifecycle::{Lifecycle, Phase};
use crate::rejection::Rejection;
use crate::relay::Buffers;

/// What becomes of a connection after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may follow.
    Continue,
    /// Close at once: there is nobody to answer, or the answer ends with the connection.
    Close,
    /// Close without destroying the answer that was just sent.
    Linger,
}

/// Serves one client until either side has had enough.
pub(crate) async fn serve(gateway: Rc<Gateway>, stream: TcpStream, lifecycle: Lifecycle) {
    let mut connection = Connection {
        client: Client::new(stream, gateway.timeouts.client_idle),
        limits: gateway.limits,
        scanner: HeadScanner::new(),
        body: Vec::new(),
        buffers: Buffers::default(),
        routed_tenant: None,
        gateway,
        lifecycle,
    };
    if connection.gateway.proxy_protocol && !connection.proxy_header().await {
        return;
    }
    loop {
        match connection.turn().await {
            After::Continue => {}
            After::Close => return,
            After::Linger => return connection.client.linger().await,
        }
    }
}

struct Connection {
    gateway: Rc<Gateway>,
    lifecycle: Lifecycle,
    client: Client,
    limits: Limits,
    scanner: HeadScanner,
    /// The tenant by which the load balancer chose this worker; empty when it knew the key of none.
    routed_tenant: Option<Vec<u8>>,
    /// The decoded body of a chunked request.
    body: Vec<u8>,
    buffers: Buffers,
}

/// Why there is no request to serve.
enum Unserved {
    /// The client left or has been idle too long.
    Gone,
    /// The client is refused, with its tenant if it is known.
    Refused(Rejection, Option<usize>),
}

impl From<Refusal> for Unserved {
    fn from(refusal: Refusal) -> Self {
        Unserved::Refused(Rejection::from(refusal), None)
    }
}

/// A request whose head was understood and whose sender is known.
struct Authenticated {
    route: Route,
    tenant: usize,
    key: KeyHash,
    framing: RequestFraming,
    keep_alive: bool,
    expect_continue: bool,
}

#[derive(Clone, Copy)]
enum Route {
    ChatCompletions,
    WrongMethod,
    Unknown,
}

impl Route {
    fn of(head: &RequestHead<'_>) -> Self {
        let path = head.target.split('?').next().unwrap_or_default();
        match (path, head.method) {
            (exchange::CHAT_COMPLETIONS, Method::Post) => Route::ChatCompletions,
            (exchange::CHAT_COMPLETIONS, _) => Route::WrongMethod,
            _ => Route::Unknown,
        }
    }
}

/// Where a complete body stands.
enum Body {
    /// In the input, behind the head.
    InPlace(Range<usize>),
    /// Decoded into the connection's body buffer.
    Decoded,
}

impl Connection {
    /// Reads what the load balancer says of the connection; `false` when it must not go on.
    async fn proxy_header(&mut self) -> bool {
        let deadline = Instant::now() + self.gateway.timeouts.client_head;
        loop {
            match parse_proxy_header(&self.client.input) {
                Err(_) => return false,
                Ok(Some(header)) => {
                    let length = header.length;
                    self.routed_tenant = Some(header.unique_id.to_vec());
                    self.client.consume(length);
                    return true;
                }
                Ok(None) => {}
            }
            if !matches!(timeout_at(deadline, self.client.fill()).await, Ok(Ok(true))) {
                return false;
            }
        }
    }

    /// Whether this worker is where the load balancer sends this tenant. It routes connections, so a second request on
    /// one connection can come from another tenant than the one the choice was made for.
    fn owns(&self, tenant: usize) -> bool {
        let name = self.gateway.catalog.tenants.tenant(tenant).name.as_bytes();
        self.routed_tenant.as_ref().is_none_or(|routed| routed == name)
    }

    async fn turn(&mut self) -> After {
        self.scanner.reset();
        let (request, head_length) = match self.request().await {
            Ok(found) => found,
            Err(unserved) => return self.unserved(unserved).await,
        };
        let tenant = request.tenant;
        let (body, consumed) = match self.body(&request, head_length).await {
            Ok(found) => found,
            Err(Unserved::Refused(rejection, _)) => {
                return self.unserved(Unserved::Refused(rejection, Some(tenant))).await;
            }
            Err(gone) => return self.unserved(gone).await,
        };
        let close = !request.keep_alive || self.lifecycle.phase() >= Phase::LameDuck;
        let input = self.client.take_input();
        let after = match request.route {
            Route::ChatCompletions => {
                let body = match body {
                    Body::InPlace(range) => &input[range],
                    Body::Decoded => &self.body,
                };
                let call = ChatCall {
                    tenant,
                    key: request.key,
                    body,
                    close,
                };
                exchange::run(
                    &self.gateway,
                    &mut self.client,
                    &mut self.buffers,
                    &mut self.lifecycle,
                    call,
                )
                .await
            }
            Route::WrongMethod => self.reply(&Rejection::METHOD_NOT_ALLOWED, tenant, close).await,
            Route::Unknown => self.reply(&Rejection::UNKNOWN_ENDPOINT, tenant, close).await,
        };
        self.client.restore(input, consumed);
        after
    }

    /// Reads a head, checks its framing and finds out who sends it, in that order.
    async fn request(&mut self) -> Result<(Authenticated, usize), Unserved> {
        let length = self.head().await?;
        let head = parse_request(&self.client.input[..length], &self.limits)?;
        let authenticated = self
            .gateway
            .catalog
            .tenants
            .authenticate(head.headers.get("authorization"));
        let (tenant, key) =
            authenticated.map_err(|denial| Unserved::Refused(Rejection::from(denial), None))?;
        if !self.owns(tenant) {
            return Err(Unserved::Refused(Rejection::MISDIRECTED, Some(tenant)));
        }
        let request = Authenticated {
            route: Route::of(&head),
            tenant,
            key,
            framing: head.framing,
            keep_alive: head.keep_alive,
            expect_continue: head.expect_continue,
        };
        Ok((request, length))
    }

    /// Waits for a whole head and returns its length in bytes.
    async fn head(&mut self) -> Result<usize, Unserved> {
        let timeouts = self.gateway.timeouts;
        if self.client.input.is_empty() {
            tokio::select! {
                biased;
                filled = timeout(timeouts.client_idle, self.client.fill()) => match filled {
                    Ok(Ok(true)) => {}
                    _ => return Err(Unserved::Gone),
                },
                () = self.lifecycle.reached(Phase::Draining) => return Err(Unserved::Gone),
            }
        }
        if let Some(length) = self.scanner.scan(&self.client.input, &self.limits)? {
            return Ok(length);
        }
        let deadline = Instant::now() + timeouts.client_head;
        loop {
            match timeout_at(deadline, self.client.fill()).await {
                Err(_) => return Err(Unserved::Refused(Rejection::SLOW_REQUEST, None)),
                Ok(Ok(true)) => {}
                Ok(_) => return Err(Unserved::Gone),
            }
            if let Some(length) = self.scanner.scan(&self.client.input, &self.limits)? {
                return Ok(length);
            }
        }
    }

    /// Waits for a whole body; returns where it stands and how many bytes of the input the request took.
    async fn body(&mut self, request: &Authenticated, head_length: usize) -> Result<(Body, usize), Unserved> {
        let deadline = Instant::now() + self.gateway.timeouts.client_body;
        match request.framing {
            RequestFraming::Empty => Ok((Body::InPlace(head_length..head_length), head_length)),
            RequestFraming::Length(length) => {
                let length = usize::try_from(length)
                    .ok()
                    .filter(|length| *length as u64 <= self.limits.body_bytes)
                    .ok_or(Refusal::BodyTooLarge)?;
                let end = head_length + length;
                if self.client.input.len() < end {
                    self.send_continue(request).await?;
                    self.client.input.reserve(end - self.client.input.len());
                }
                while self.client.input.len() < end {
                    self.fill_body(deadline).await?;
                }
                Ok((Body::InPlace(head_length..end), end))
            }
            RequestFraming::Chunked => {
                self.client.consume(head_length);
                self.body.clear();
                let mut decoder = BodyDecoder::for_request(request.framing, &self.limits);
                let mut asked = false;
                loop {
                    let mut used = 0;
                    let done = loop {
                        let step = decoder.decode(&self.client.input[used..])?;
                        let data = used + step.data.start..used + step.data.end;
                        self.body.extend_from_slice(&self.client.input[data]);
                        used += step.consumed;
                        if step.done || step.consumed == 0 {
                            break step.done;
                        }
                    };
                    self.client.consume(used);
                    if done {
                        return Ok((Body::Decoded, 0));
                    }
                    if !asked {
                        asked = true;
                        self.send_continue(request).await?;
                    }
                    self.fill_body(deadline).await?;
                }
            }
        }
    }

    async fn fill_body(&mut self, deadline: Instant) -> Result<(), Unserved> {
        match timeout_at(deadline, self.client.fill()).await {
            Err(_) => Err(Unserved::Refused(Rejection::SLOW_REQUEST, None)),
            Ok(Ok(true)) => Ok(()),
            Ok(_) => Err(Unserved::Gone),
        }
    }

    async fn send_continue(&mut self, request: &Authenticated) -> Result<(), Unserved> {
        if request.expect_continue {
            let sent = self.client.send([encode::CONTINUE, b"", b""]).await;
            sent.map_err(|_| Unserved::Gone)?;
        }
        Ok(())
    }

    /// Answers a request that is not understood or not wanted; the connection cannot go on after it.
    async fn unserved(&mut self, unserved: Unserved) -> After {
        match unserved {
            Unserved::Gone => After::Close,
            Unserved::Refused(rejection, tenant) => {
                let bytes = self.client.input.len();
                let tenant = tenant.map(|index| self.gateway.catalog.tenants.tenant(index).name.as_str());
                let id = self.gateway.reject(&rejection, tenant, None, bytes).await;
                self.send_answer(&rejection.answer(), id.as_str(), true).await
            }
        }
    }

    /// Answers a request that was read whole but has no use here.
    async fn reply(&mut self, rejection: &Rejection, tenant: usize, close: bool) -> After {
        let tenant = &self.gateway.catalog.tenants.tenant(tenant).name;
        let id = self.gateway.reject(rejection, Some(tenant), None, 0).await;
        self.send_answer(&rejection.answer(), id.as_str(), close).await
    }

    async fn send_answer(&mut self, answer: &Answer<'_>, id: &str, close: bool) -> After {
        exchange::send_answer(&mut self.client, &mut self.buffers, answer, id, close).await
    }
}
