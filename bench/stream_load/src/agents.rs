//! The client of agents: connections that each send the requests of sessions, one after another.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::arguments::Arguments;
use crate::body::{Body, read_head};
use crate::latency::Latencies;
use crate::mark;
use crate::session::Session;

/// What a connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Play {
    /// The last turn of a session that nobody has seen, then that of another one.
    First,
    /// The last turn of one session again and again, with another last message each time; the turn before it goes first.
    Next,
    /// Every turn of a session, then those of another one, until the window is over at the end of one.
    Whole,
}

impl Play {
    fn named(name: &str) -> Result<Self, String> {
        match name {
            "first" => Ok(Self::First),
            "next" => Ok(Self::Next),
            "whole" => Ok(Self::Whole),
            _ => Err(format!("--play: {name} is neither first, next nor whole")),
        }
    }
}

/// Sends requests until the window has passed, and prints the report.
///
/// # Errors
/// An argument is missing, or the operating system refuses sockets.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let target = arguments.text("target")?;
    let address = target
        .parse()
        .map_err(|_| format!("--target: {target} is not an address"))?;
    let file = std::fs::read(arguments.text("session")?).map_err(|error| format!("--session: {error}"))?;
    let mut head = format!("POST {} HTTP/1.1\r\nhost: {target}\r\n", arguments.text("path")?);
    for header in arguments.all("header") {
        head += &format!("{header}\r\n");
    }
    head += "content-type: application/json\r\ncontent-length: ";
    let plan = Plan {
        address,
        head: head.into_bytes(),
        session: Session::read(&file)?,
        play: Play::named(arguments.text("play")?)?,
        connections: usize::try_from(arguments.number("connections")?).map_err(|error| error.to_string())?,
        window_us: arguments.number("window-ms")? * 1_000,
    };
    let mut found = Agents::new(plan)
        .and_then(Agents::run)
        .map_err(|error| format!("agents: {error}"))?;
    println!("{}", found.to_json());
    Ok(())
}

struct Plan {
    address: SocketAddr,
    /// The head of each request up to its length.
    head: Vec<u8>,
    session: Session,
    play: Play,
    connections: usize,
    /// Time over which requests are measured: from when every connection has had an answer, or of whole sessions from the
    /// begin.
    window_us: u64,
}

/// How long the client waits behind the line that says that the window is open, for whoever reads the clock of a process.
const SETTLE: Duration = Duration::from_millis(20);

struct Agent {
    socket: TcpStream,
    request: Vec<u8>,
    /// Bytes of the request already written.
    written: usize,
    /// When it was begun.
    began_us: u64,
    head: Vec<u8>,
    body: Option<Body>,
    answer: Vec<u8>,
    /// The number of its session, and the turn at hand.
    session: u64,
    turn: usize,
    answers: u64,
}

struct Agents {
    poll: Poll,
    plan: Plan,
    agents: Vec<Option<Agent>>,
    /// What the next session or last message is marked with: the clock has never said it before.
    next: u64,
    found: Latencies,
    closes_us: Option<u64>,
}

impl Agents {
    fn new(plan: Plan) -> std::io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            plan,
            agents: Vec::new(),
            next: mark::now_us(),
            found: Latencies::default(),
            closes_us: None,
        })
    }

    fn run(mut self) -> std::io::Result<Latencies> {
        let whole = self.plan.play == Play::Whole;
        let mut opened = None;
        if whole {
            opened = Some(self.open());
        }
        for number in 0..self.plan.connections {
            let mut socket = TcpStream::connect(self.plan.address)?;
            socket.set_nodelay(true)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut socket, Token(number), interest)?;
            self.agents.push(Some(Agent::new(socket)));
            self.send_next(number);
        }
        let mut events = Events::with_capacity(1024);
        loop {
            let waiting = self.agents.iter().flatten().any(|agent| agent.answers < 2);
            if opened.is_none() && !waiting {
                opened = Some(self.open());
            }
            let now = mark::now_us();
            let is_over = self.closes_us.is_some_and(|closes| now >= closes);
            if self.agents.iter().all(Option::is_none) || (is_over && !whole) {
                println!("window closes");
                self.found.window_us = now - opened.unwrap_or(now);
                return Ok(self.found);
            }
            match self.poll.poll(&mut events, Some(Duration::from_millis(1))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                self.serve(event.token().0);
            }
        }
    }

    /// Opens the window, and says when.
    fn open(&mut self) -> u64 {
        println!("window opens");
        std::thread::sleep(SETTLE);
        let now = mark::now_us();
        self.closes_us = Some(now + self.plan.window_us);
        now
    }

    /// Readies the next request of a connection; one that has played whole sessions for long enough is closed.
    fn send_next(&mut self, number: usize) {
        let Self {
            plan, agents, next, ..
        } = self;
        let Some(agent) = agents[number].as_mut() else {
            return;
        };
        let last = plan.session.turns();
        agent.turn = match plan.play {
            Play::First => last,
            Play::Next if agent.answers == 0 => last.saturating_sub(1).max(1),
            Play::Next => last,
            Play::Whole if agent.turn == last => 0,
            Play::Whole => agent.turn + 1,
        };
        let now = mark::now_us();
        if agent.turn == 0 {
            if self.closes_us.is_some_and(|closes| now >= closes) {
                agents[number] = None;
                return;
            }
            agent.turn = 1;
        }
        *next += 1;
        let is_new = match plan.play {
            Play::First => true,
            Play::Next => agent.answers == 0,
            Play::Whole => agent.turn == 1,
        };
        if is_new {
            agent.session = *next;
        }
        let marked = if plan.play == Play::Next {
            *next
        } else {
            agent.session
        };
        agent.begin(plan, marked, now);
    }

    fn serve(&mut self, number: usize) {
        let mut piece = [0; 16 << 10];
        loop {
            let Some(agent) = self.agents[number].as_mut() else {
                return;
            };
            let taken = match agent.send() {
                Err(error) => Err(error.to_string()),
                Ok(()) => match agent.socket.read(&mut piece) {
                    Ok(0) => Err("closed before the answer".to_owned()),
                    Ok(bytes) => agent.take(&piece[..bytes]),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                        return;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => Err(error.to_string()),
                },
            };
            match taken {
                Ok(false) => {}
                Ok(true) => {
                    agent.answers += 1;
                    if self.closes_us.is_some() {
                        let bytes = self.plan.session.length(agent.turn) as u64;
                        self.found.add(mark::now_us() - agent.began_us, bytes);
                    }
                    self.send_next(number);
                }
                Err(reason) => {
                    self.found.fail(reason);
                    self.agents[number] = None;
                }
            }
        }
    }
}

impl Agent {
    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            request: Vec::new(),
            written: 0,
            began_us: 0,
            head: Vec::new(),
            body: None,
            answer: Vec::new(),
            session: 0,
            turn: 0,
            answers: 0,
        }
    }

    /// Begins the request of the turn at hand, whose own messages are marked with `marked`.
    fn begin(&mut self, plan: &Plan, marked: u64, now_us: u64) {
        self.request.clear();
        self.request.extend_from_slice(&plan.head);
        let length = format!("{}\r\n\r\n", plan.session.length(self.turn));
        self.request.extend_from_slice(length.as_bytes());
        plan.session
            .write(self.turn, self.session, marked, &mut self.request);
        (self.written, self.began_us) = (0, now_us);
        (self.body, self.head, self.answer) = (None, Vec::new(), Vec::new());
    }

    fn send(&mut self) -> std::io::Result<()> {
        while self.written < self.request.len() {
            match self.socket.write(&self.request[self.written..]) {
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

    /// Takes a piece of the answer; whether that was the last.
    fn take(&mut self, piece: &[u8]) -> Result<bool, String> {
        let Some(body) = &mut self.body else {
            self.head.extend_from_slice(piece);
            let Some(head) = read_head(&self.head) else {
                return Ok(false);
            };
            let mut body = Body::new(head.framing);
            body.push(&self.head[head.length..], &mut self.answer);
            if head.status != 200 {
                let said = String::from_utf8_lossy(&self.answer[..self.answer.len().min(200)]);
                return Err(format!("status {} in turn {}: {said}", head.status, self.turn));
            }
            return Ok(self.body.insert(body).ended());
        };
        body.push(piece, &mut self.answer);
        Ok(body.ended())
    }
}
