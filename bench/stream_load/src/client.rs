//! The client: as many open streams as it is told, each followed by the next on the same connection.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::arguments::Arguments;
use crate::body::{Body, read_head};
use crate::events::GOOD_ENDS;
use crate::mark;
use crate::report::Report;

/// Opens the streams, waits for the window to pass, and prints the report.
///
/// # Errors
/// An argument is missing, or the operating system refuses sockets.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let target = arguments.text("target")?;
    let address = target
        .parse()
        .map_err(|_| format!("--target: {target} is not an address"))?;
    let body = std::fs::read(arguments.text("body")?).map_err(|error| format!("--body: {error}"))?;
    let mut request = format!("POST {} HTTP/1.1\r\nhost: {target}\r\n", arguments.text("path")?);
    for header in arguments.all("header") {
        request += &format!("{header}\r\n");
    }
    request += &format!(
        "content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut request = request.into_bytes();
    request.extend_from_slice(&body);
    let plan = Plan {
        address,
        request,
        streams: usize::try_from(arguments.number("streams")?).map_err(|error| error.to_string())?,
        tokens: arguments.number("tokens")?,
        ramp_us: arguments.number("ramp-ms")? * 1_000,
        window_us: arguments.number("window-ms")? * 1_000,
    };
    let mut report = Client::new(plan)
        .and_then(Client::run)
        .map_err(|error| format!("client: {error}"))?;
    println!("{}", report.to_json());
    Ok(())
}

struct Plan {
    address: SocketAddr,
    request: Vec<u8>,
    streams: usize,
    tokens: u64,
    /// Time over which the streams are opened, evenly.
    ramp_us: u64,
    /// Time over which tokens are measured, from when every stream has begun.
    window_us: u64,
}

/// How long after the ramp the streams may take to begin; those that have not begun at the end have failed.
const BEGIN_US: u64 = 5_000_000;

struct Stream {
    socket: TcpStream,
    /// Bytes of the request already written.
    written: usize,
    head: Vec<u8>,
    body: Option<Body>,
    payload: Vec<u8>,
    tokens: u64,
    done: bool,
    /// Whether a token ever came, on this connection or on the one before it.
    began: bool,
}

struct Client {
    poll: Poll,
    plan: Plan,
    streams: Vec<Option<Stream>>,
    report: Report,
    measuring: bool,
}

impl Client {
    fn new(plan: Plan) -> std::io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Self {
            poll,
            plan,
            streams: Vec::new(),
            report: Report::default(),
            measuring: false,
        })
    }

    fn run(mut self) -> std::io::Result<Report> {
        let begin = mark::now_us();
        let ramped = begin + self.plan.ramp_us;
        let mut window = None;
        let mut events = Events::with_capacity(1024);
        loop {
            let now = mark::now_us();
            if window.is_none() && now >= ramped && (self.all_began() || now >= ramped + BEGIN_US) {
                self.measuring = true;
                window = Some(now);
                println!("window opens");
            }
            let closes = window.map(|opened| opened + self.plan.window_us);
            if closes.is_some_and(|closes| now >= closes) {
                println!("window closes");
                self.report.window_us = now - window.unwrap_or(now);
                self.fail_those_without_a_token();
                return Ok(self.report);
            }
            let elapsed = usize::try_from(now - begin).unwrap_or(usize::MAX);
            let ramp = usize::try_from(self.plan.ramp_us.max(1)).unwrap_or(1);
            let wanted = (self.plan.streams * elapsed.min(ramp))
                .div_ceil(ramp)
                .min(self.plan.streams);
            while self.streams.len() < wanted {
                let number = self.streams.len();
                self.streams.push(None);
                self.connect(number)?;
            }
            // Until the window opens there is something to look at every millisecond.
            let wait = closes.map_or(1_000, |closes| closes.saturating_sub(now));
            match self
                .poll
                .poll(&mut events, Some(Duration::from_micros(wait.max(1))))
            {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                self.serve(event.token().0)?;
            }
        }
    }

    fn all_began(&self) -> bool {
        self.streams.len() == self.plan.streams && self.streams.iter().flatten().all(|stream| stream.began)
    }

    fn fail_those_without_a_token(&mut self) {
        let silent = self
            .streams
            .iter()
            .flatten()
            .filter(|stream| !stream.began)
            .count();
        self.report.failed += silent as u64;
        if silent > 0 {
            self.report
                .first_failure
                .get_or_insert("it never began".to_owned());
        }
    }

    fn connect(&mut self, number: usize) -> std::io::Result<()> {
        let mut socket = TcpStream::connect(self.plan.address)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(&mut socket, Token(number), interest)?;
        let began = self.streams[number].as_ref().is_some_and(|stream| stream.began);
        self.streams[number] = Some(Stream {
            socket,
            written: 0,
            head: Vec::new(),
            body: None,
            payload: Vec::new(),
            tokens: 0,
            done: false,
            began,
        });
        Ok(())
    }

    fn serve(&mut self, number: usize) -> std::io::Result<()> {
        let Some(stream) = self.streams[number].as_mut() else {
            return Ok(());
        };
        let mut piece = [0; 16 << 10];
        let failure = loop {
            if let Err(error) = stream.send(&self.plan.request) {
                break error.to_string();
            }
            let bytes = match stream.socket.read(&mut piece) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => break error.to_string(),
            };
            if bytes == 0 {
                // A body without framing ends so; an idle connection may end so.
                let whole = stream.done && stream.tokens == self.plan.tokens;
                if whole {
                    self.report.completed += 1;
                } else if stream.written > 0 {
                    break format!("closed after {} tokens", stream.tokens);
                }
                return self.connect(number);
            }
            let lateness = self.measuring.then_some(&mut self.report.lateness_us);
            if let Err(reason) = stream.take(&piece[..bytes], lateness) {
                break reason;
            }
            if stream.body.as_ref().is_some_and(Body::ended) {
                if !stream.done || stream.tokens != self.plan.tokens {
                    break format!("ended after {} tokens", stream.tokens);
                }
                self.report.completed += 1;
                stream.again();
            }
        };
        self.report.failed += 1;
        self.report.first_failure.get_or_insert(failure);
        // Not opened again: a system that refuses streams would be flooded with connections.
        self.streams[number] = None;
        Ok(())
    }
}

impl Stream {
    fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        while self.written < request.len() {
            match self.socket.write(&request[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes a piece of the response; tokens in it are measured when there is somewhere to put their lateness.
    fn take(&mut self, piece: &[u8], lateness: Option<&mut Vec<u32>>) -> Result<(), String> {
        let body = match &mut self.body {
            Some(body) => {
                body.push(piece, &mut self.payload);
                body
            }
            None => {
                self.head.extend_from_slice(piece);
                let Some(head) = read_head(&self.head) else {
                    return Ok(());
                };
                if head.status != 200 {
                    return Err(format!("status {}", head.status));
                }
                let body = self.body.insert(Body::new(head.framing));
                body.push(&self.head[head.length..], &mut self.payload);
                body
            }
        };
        let mut lateness = lateness;
        let whole = if body.ended() {
            self.payload.len()
        } else {
            memchr::memrchr(b'\n', &self.payload).map_or(0, |place| place + 1)
        };
        let now = mark::now_us();
        for line in self.payload[..whole].split(|byte| *byte == b'\n') {
            if let Some(mark) = mark::read(line) {
                self.tokens += 1;
                self.began = true;
                if let Some(lateness) = &mut lateness {
                    lateness.push(u32::try_from(mark::lateness_us(now, mark)).unwrap_or(u32::MAX));
                }
            } else if GOOD_ENDS.iter().any(|end| line.starts_with(end)) {
                self.done = true;
            }
        }
        self.payload.drain(..whole);
        Ok(())
    }

    /// Readies the connection for the next stream.
    fn again(&mut self) {
        self.written = 0;
        self.head.clear();
        self.body = None;
        self.payload.clear();
        self.tokens = 0;
        self.done = false;
    }
}
