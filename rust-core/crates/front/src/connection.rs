//! One client connection: reads, authenticates and answers its requests one after the other.

mod form;
mod form_boundary;
mod object_access;
mod unauthenticated;
mod unauthenticated_request;

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use proofgate_auth::Identity;
use proofgate_base::anthropic_headers::AnthropicHeaders;
use proofgate_base::approvals::Approval;
use proofgate_base::client::{Client, ClientStream, ConnectionAction};
use proofgate_base::deadline::Deadline;
use proofgate_base::error_response::{ResponseOptions, write_response};
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::memory::MemoryExhausted;
use proofgate_base::rejection::Rejection;
use proofgate_base::routing::Peer;
use proofgate_config::FlagAction;
use proofgate_exchange::body::{BodyReader, RequestBody, RequestReadError, check_fill};
use proofgate_exchange::endpoint::Route;
use proofgate_exchange::exchange;
use proofgate_exchange::gateway::Gateway;
use proofgate_exchange::incoming_call::IncomingCall;
use proofgate_exchange::receipts;
use proofgate_exchange::reply::{ConnectionBuffers, Reply};
use proofgate_exchange::usage_report;
use proofgate_ledger::record::ConfigId;
use proofgate_multipart::Boundary;
use proofgate_observe::attribution::Attribution;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_observe::telemetry::{ObservedExchange, ObservedRequest};
use proofgate_providers::{Dialect, Family};
use proofgate_stages::{Span, Stage};
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::claude_body;
use proofgate_upstream::google_path::BodyForm;
use proofgate_upstream::models;
use proofgate_wire::{
    HeadScanner, Headers, Method, ProtocolError, RequestFraming, RequestHead, parse_request,
};
use tokio::time::{Instant, timeout_at};

use self::form_boundary::parse_boundary;
use self::unauthenticated_request::UnauthenticatedRequest;
use crate::cors;

/// Serves one client until either side closes the connection. `peer` is what is known about the connection.
pub async fn serve(gateway: Rc<Gateway>, stream: ClientStream, lifecycle: Lifecycle, peer: Peer) {
    let catalog = gateway.catalog();
    let oldest = match &stream {
        // The HTTP/2 connection that carries the stream has its own maximum age.
        ClientStream::Http2(_) => None,
        _ => std::time::Instant::now()
            .checked_add(gateway.random.jitter(catalog.settings.timeouts.connection_age)),
    };
    let mut connection = Connection {
        client: Client::new(
            stream,
            catalog.settings.timeouts.client_idle,
            &gateway.buffers.budget,
        ),
        scanner: HeadScanner::new(),
        buffers: ConnectionBuffers::default(),
        extra_headers: Vec::new(),
        attribution: Attribution::default(),
        approvals: Vec::new(),
        peer,
        close_after: oldest,
        catalog,
        gateway,
        lifecycle,
        deadline: Deadline::default(),
    };
    loop {
        match connection.serve_exchange().await {
            ConnectionAction::Continue => {}
            ConnectionAction::Close => return,
            ConnectionAction::Linger => return Box::pin(connection.client.linger()).await,
        }
    }
}

struct Connection {
    gateway: Rc<Gateway>,
    /// The configuration that was active when the current request started.
    catalog: Rc<Catalog>,
    lifecycle: Lifecycle,
    /// Deadline for waits on the upstream.
    deadline: Deadline,
    client: Client,
    scanner: HeadScanner,
    peer: Peer,
    /// Time after which the next response closes the connection, so that the client reconnects and
    /// is routed again.
    close_after: Option<std::time::Instant>,
    /// Additional header lines of the response to this request.
    extra_headers: Vec<u8>,
    /// The session and the end user of the request, as the client states them.
    attribution: Attribution,
    /// The approvals for calls of guarded tools.
    approvals: Vec<Approval>,
    buffers: ConnectionBuffers,
}

/// A request with a valid head from an authenticated sender.
struct Request {
    route: Route,
    /// The head fields that are forwarded upstream, if any are.
    fields: Option<Box<AnthropicHeaders>>,
    identity: Identity,
    config: ConfigId,
    framing: RequestFraming,
    /// Set if the request is a form with files.
    boundary: Option<Boundary>,
    keep_alive: bool,
    head_only: bool,
    expect_continue: bool,
}

/// What is known about a request so far, for the response if it is rejected.
#[derive(Default)]
struct PartialRequest {
    tenant: Option<Arc<str>>,
    /// The configured name of the API key.
    key_name: Option<Arc<str>>,
    /// Whether the client requests no response body (HEAD).
    head_only: bool,
    /// The API family whose error format the client expects.
    family: Family,
    /// The telemetry of the request, if it is observed.
    observed: Option<Box<ObservedExchange>>,
}

/// The outcome of reading a request's head.
enum HeadOutcome {
    Request(Request),
    /// The request is answered without a key.
    Unauthenticated {
        asked: UnauthenticatedRequest,
        keep_alive: bool,
    },
}

impl Connection {
    /// Whether the load balancer routes this tenant to this worker. The load balancer routes
    /// connections, so a later request on a connection can belong to another tenant than its first
    /// request.
    fn owns(&self, identity: &Identity) -> bool {
        self.peer.tenant_route.allows(&identity.tenant.name)
    }

    /// Whether the connection has reached its maximum age, or its worker is retiring or draining.
    fn should_close(&self, now: std::time::Instant) -> bool {
        self.lifecycle.phase() >= Phase::Retiring || self.close_after.is_some_and(|oldest| oldest <= now)
    }

    async fn serve_exchange(&mut self) -> ConnectionAction {
        self.scanner.reset();
        self.extra_headers.clear();
        let length = match self.read_head().await {
            Ok(length) => length,
            Err(unserved) => {
                let unserved = self.reject(unserved, PartialRequest::default(), Span::default());
                return Box::pin(unserved).await;
            }
        };
        let now = std::time::Instant::now();
        let mut span = Span::start(&self.gateway.observers.profiler, now);
        self.catalog = self.gateway.catalog();
        let mut known = PartialRequest::default();
        let request = match self.read_request(length, now, &mut span, &mut known) {
            Ok(HeadOutcome::Request(request)) => request,
            Ok(HeadOutcome::Unauthenticated { asked, keep_alive }) => {
                return Box::pin(self.respond_unauthenticated(asked, length, keep_alive, now)).await;
            }
            Err(unserved) => return Box::pin(self.reject(unserved, known, span)).await,
        };
        if let Some(boundary) = &request.boundary {
            let boundary = boundary.clone();
            return Box::pin(self.serve_form(request, boundary, known, length, now, span)).await;
        }
        let reader = BodyReader {
            settings: &self.catalog.settings,
            client: &mut self.client,
            expect_continue: request.expect_continue,
        };
        let body = match reader.read(request.framing, length).await {
            Ok(body) => body,
            Err(unserved) => return Box::pin(self.reject(unserved, known, span)).await,
        };
        span.lap_now(Stage::Body);
        pin!(self.respond(request, known, body, now, span)).await
    }

    async fn respond(
        &mut self,
        mut request: Request,
        known: PartialRequest,
        body: RequestBody,
        now: std::time::Instant,
        mut span: Span,
    ) -> ConnectionAction {
        let close = !request.keep_alive || self.should_close(now);
        let PartialRequest { family, observed, .. } = known;
        let tenant = &request.identity.tenant;
        let answered = match &request.route {
            Route::Call(..) | Route::StoredObject(_) => {
                let Some(dialect) = request.route.dialect() else {
                    return ConnectionAction::Close;
                };
                let (in_path, stored) = match &request.route {
                    Route::Call(_, in_path) => (in_path.as_deref(), None),
                    Route::StoredObject(call) => (None, Some(&**call)),
                    _ => (None, None),
                };
                let range = body.range.clone();
                let message = claude_body::normalize(
                    &self.gateway.buffers.budget,
                    in_path,
                    &self.client.input[range.clone()],
                    request.fields.as_deref_mut(),
                );
                let Ok(message) = message else {
                    let refused = RequestReadError::Rejected(Rejection::OVERLOADED);
                    let known = PartialRequest {
                        tenant: Some(Arc::clone(&tenant.name)),
                        key_name: request.identity.key_name.clone(),
                        head_only: false,
                        family,
                        observed,
                    };
                    return Box::pin(self.reject(refused, known, span)).await;
                };
                let input = self.client.take_input();
                let as_it_came = &input[range];
                let body_at = match body.was_awaited {
                    true => std::time::Instant::now(),
                    false => now,
                };
                let call = IncomingCall {
                    gateway: &self.gateway,
                    catalog: &self.catalog,
                    identity: &request.identity,
                    dialect,
                    path_params: in_path,
                    stored_call: stored,
                    anthropic_headers: request.fields,
                    attribution: &mut self.attribution,
                    client_address: self.peer.address,
                    approvals: &self.approvals,
                    config: request.config,
                    body: message.as_deref().unwrap_or(as_it_came),
                    original_body: as_it_came,
                    form: None,
                    upload: Cell::default(),
                    head_received_at: now,
                    body_received_at: body_at,
                    span,
                    observed_exchange: observed,
                    series: None,
                    common_headers_length: 0,
                };
                let back = Reply {
                    client: &mut self.client,
                    buffers: &mut self.buffers,
                    extra_headers: &mut self.extra_headers,
                    lifecycle: &mut self.lifecycle,
                    deadline: &mut self.deadline,
                    close,
                    dialect,
                    frame_writer: (request.route.body_form() == BodyForm::Invoke).then(Box::default),
                };
                // Pinned in place, because awaiting the future by value would copy it twice.
                let after = pin!(exchange::run(call, back)).await;
                self.attribution.clear();
                self.buffers.release(&self.gateway.buffers.pool);
                return match self.client.restore(input, body.consumed) {
                    Ok(()) => after,
                    Err(MemoryExhausted) => ConnectionAction::Close,
                };
            }
            Route::Models => {
                let now = self.gateway.clock.unix_micros(now);
                let list = models::list(&self.catalog, tenant, family, now, &mut self.extra_headers);
                Ok((200, Some(list), None))
            }
            Route::Model(name) => {
                let now = self.gateway.clock.unix_micros(now);
                let model = models::get(&self.catalog, tenant, name, family, now);
                model.map(|model| (200, Some(model), None))
            }
            Route::Usage => {
                let now = self.gateway.clock.unix_micros(now);
                let told = usage_report::build_report(&self.gateway, &request.identity, now);
                told.map(|usage| (200, Some(usage), None))
            }
            Route::Receipt(asked) => {
                let asking = receipts::respond(
                    &self.gateway,
                    &self.catalog,
                    &request.identity,
                    asked,
                    now,
                    &mut self.extra_headers,
                );
                // Boxed: only receipt requests need the memory.
                Box::pin(asking).await.map(|receipt| (200, Some(receipt), None))
            }
            Route::Options(allow) => Ok((204, None, Some(("allow", *allow)))),
            // Answered before authentication.
            Route::Probe => Ok((200, None, None)),
            Route::WrongMethod(allow) => Err(Rejection::method_not_allowed(allow)),
            Route::Unknown => Err(Rejection::UNKNOWN_ENDPOINT),
            Route::InvalidGooglePath(error) => Err(Rejection::from(*error)),
            Route::InvalidStoredObject(error) => Err(Rejection::from(error)),
        };
        let options = ResponseOptions {
            close,
            head_only: request.head_only,
            extra_headers: &self.extra_headers,
            family,
        };
        self.gateway.buffers.pool.acquire(&mut self.buffers.head);
        self.buffers.head.clear();
        match answered {
            Ok((status, json, field)) => {
                let id = self.gateway.request_id(self.gateway.clock.unix_micros(now));
                let json = json.unwrap_or_default();
                let head = &mut self.buffers.head;
                write_response(
                    status,
                    "application/json",
                    &json,
                    id.as_str(),
                    field,
                    options,
                    head,
                );
            }
            Err(rejection) => {
                let refused = RejectedRequest {
                    tenant: Some(&tenant.name),
                    key_name: request.identity.key_name.clone(),
                    endpoint: request.route.path(),
                    observed_exchange: observed,
                    ..RejectedRequest::from_peer(&self.peer)
                };
                let id = self.gateway.reject(&rejection, refused).await;
                span.lap_now(Stage::CompletionRecord);
                rejection
                    .to_response()
                    .write(id.as_str(), options, &mut self.buffers.head);
            }
        }
        self.client.input.consume(body.consumed);
        self.send_and_measure(close, span).await
    }

    /// Reads a head of `length` bytes: first its framing, then its sender, then the requested operation.
    fn read_request(
        &mut self,
        length: usize,
        now: std::time::Instant,
        span: &mut Span,
        known: &mut PartialRequest,
    ) -> Result<HeadOutcome, RequestReadError> {
        let terms = &self.catalog.settings;
        let parsed = parse_request(&self.client.input[..length], &terms.head_limits);
        // Used by reference, because it is large.
        let head = parsed.as_ref().map_err(|refusal| *refusal)?;
        let route = Route::from_head(head);
        let has_form = route.dialect().is_some_and(Dialect::has_form);
        if let RequestFraming::Length(length) = head.framing
            && length > terms.limits.body_bytes
            && !has_form
        {
            return Err(ProtocolError::BodyTooLarge.into());
        }
        known.head_only = head.method == Method::Head;
        known.family = route.family(head);
        let cors = terms.cors.as_ref();
        cors::write_fields(cors, &head.headers, &mut self.extra_headers);
        span.lap_now(Stage::Parse);
        if let Some(asked) = UnauthenticatedRequest::from_head(&route, head, cors) {
            // The body is not read, so the bytes after it must not be parsed as a request.
            let keep_alive = head.keep_alive && head.framing == RequestFraming::Empty;
            return Ok(HeadOutcome::Unauthenticated { asked, keep_alive });
        }
        if let Route::InvalidGooglePath(error) = route {
            return Err(Rejection::from(error).into());
        }
        let identity = self.authenticate(head, &route, now, known)?;
        span.lap_now(Stage::Auth);
        if head.framing != RequestFraming::Empty && has_content_coding(&head.headers) {
            return Err(Rejection::UNSUPPORTED_CONTENT_CODING.into());
        }
        self.attribution.read_head(&head.headers);
        self.approvals = match &terms.plan(&identity.tenant).tool_policy {
            Some(guarded) if guarded.on_flag == FlagAction::RequireApproval => {
                Approval::from_headers(&head.headers)
            }
            _ => Vec::new(),
        };
        let fields = match route {
            Route::Call(dialect, _) => AnthropicHeaders::from_headers(dialect.family(), &head.headers),
            _ => None,
        };
        let boundary = match has_form {
            true => Some(parse_boundary(&head.headers).map_err(Rejection::from)?),
            false => None,
        };
        Ok(HeadOutcome::Request(Request {
            route,
            fields,
            identity,
            config: self.gateway.observers.recorder.config(),
            framing: head.framing,
            boundary,
            keep_alive: head.keep_alive,
            head_only: known.head_only,
            expect_continue: head.expect_continue,
        }))
    }

    /// Authenticates the sender of a request and checks that it may make this request on this worker.
    fn authenticate(
        &self,
        head: &RequestHead<'_>,
        route: &Route,
        now: std::time::Instant,
        known: &mut PartialRequest,
    ) -> Result<Identity, RequestReadError> {
        let terms = &self.catalog.settings;
        let seconds = self.gateway.clock.unix_micros(now) / 1_000_000;
        let identity = self
            .gateway
            .authenticate(&terms.authenticator, &head.keys, seconds)
            .map_err(Rejection::from)?;
        known.tenant = Some(Arc::clone(&identity.tenant.name));
        known.key_name.clone_from(&identity.key_name);
        let asked = ObservedRequest {
            headers: &head.headers,
            received_at: now,
            tenant: &identity.tenant.name,
            endpoint: route.path(),
        };
        known.observed = ObservedExchange::start(
            &self.gateway.clock,
            &self.gateway.random,
            &terms.telemetry,
            &asked,
        );
        if !self.owns(&identity) {
            return Err(Rejection::MISDIRECTED.into());
        }
        let allowed = |endpoint| terms.plan(&identity.tenant).allowed.allows_endpoint(endpoint);
        if !route.endpoint().is_none_or(allowed) {
            let denial = proofgate_auth::AuthError::EndpointNotAllowed;
            return Err(Rejection::from(denial).into());
        }
        if let Route::StoredObject(call) = route {
            let object_provider = self.catalog.object_provider(&identity.tenant);
            object_access::check_access(
                call.operation,
                object_provider,
                terms.plan(&identity.tenant),
                head.framing,
            )?;
        }
        Ok(identity)
    }

    /// Waits for a complete head and returns its length in bytes.
    async fn read_head(&mut self) -> Result<usize, RequestReadError> {
        let timeouts = self.catalog.settings.timeouts;
        let limits = self.catalog.settings.limits;
        if self.client.input.is_empty() {
            tokio::select! {
                biased;
                filled = self.client.fill_with_timeout(timeouts.client_idle) => check_fill(filled)?,
                () = self.lifecycle.wait_for_idle_close(timeouts.lame_duck) => return Err(RequestReadError::ClientDisconnected),
            }
        }
        if let Some(length) = self.scanner.scan(&self.client.input, &limits)? {
            return Ok(length);
        }
        let deadline = Instant::now() + timeouts.client_head;
        loop {
            match timeout_at(deadline, self.client.fill()).await {
                Err(_) => return Err(RequestReadError::Rejected(Rejection::SLOW_REQUEST)),
                Ok(filled) => check_fill(filled)?,
            }
            if let Some(length) = self.scanner.scan(&self.client.input, &limits)? {
                return Ok(length);
            }
        }
    }

    /// Answers a request that is invalid or rejected. The connection cannot continue afterwards.
    async fn reject(
        &mut self,
        unserved: RequestReadError,
        known: PartialRequest,
        mut span: Span,
    ) -> ConnectionAction {
        let RequestReadError::Rejected(rejection) = unserved else {
            return ConnectionAction::Close;
        };
        let refused = RejectedRequest {
            tenant: known.tenant.as_deref(),
            key_name: known.key_name,
            bytes: self.client.input.len(),
            observed_exchange: known.observed,
            ..RejectedRequest::from_peer(&self.peer)
        };
        self.client.discard_input();
        let id = self.gateway.reject(&rejection, refused).await;
        span.lap_now(Stage::CompletionRecord);
        let options = ResponseOptions {
            close: true,
            head_only: known.head_only,
            extra_headers: &self.extra_headers,
            family: known.family,
        };
        self.gateway.buffers.pool.acquire(&mut self.buffers.head);
        self.buffers.head.clear();
        rejection
            .to_response()
            .write(id.as_str(), options, &mut self.buffers.head);
        self.send_and_measure(true, span).await
    }

    async fn send_and_measure(&mut self, close: bool, mut span: Span) -> ConnectionAction {
        let after = self.send_head(close).await;
        span.lap_now(Stage::ClientWrite);
        span.finish_now(&self.gateway.observers.profiler);
        after
    }

    async fn send_head(&mut self, close: bool) -> ConnectionAction {
        let sent = self.client.send(&self.buffers.head).await;
        self.buffers.release(&self.gateway.buffers.pool);
        match sent {
            Ok(()) if close => ConnectionAction::Linger,
            Ok(()) => ConnectionAction::Continue,
            Err(_) => ConnectionAction::Close,
        }
    }
}

/// Whether a body has a content coding (RFC 9110 section 8.4).
fn has_content_coding(headers: &Headers<'_>) -> bool {
    let codings = headers.iter();
    let codings = codings.filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    codings
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}
