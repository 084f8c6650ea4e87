//! A client that sends any bytes: frames of HTTP/2 (RFC 9113 section 4) written by hand.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep, timeout};
use tokio_rustls::client::TlsStream;

use crate::client::{tcp, tls};
use crate::gateway::{FIRST, Gateway, PATIENCE};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub type Field<'f> = (&'f str, &'f str);

/// A connection on which the preface was sent.
pub struct Raw(TlsStream<TcpStream>);

/// The outcome of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The stream was reset with this error code.
    Reset(u32),
    /// The connection was closed with this error code.
    GoAway(u32),
    /// The stream got a response with this body.
    Answer(String),
    /// The connection was closed without GOAWAY.
    Closed,
}

impl Raw {
    pub async fn connect(gateway: &Gateway) -> Self {
        let mut stream = tls(tcp(gateway).await, FIRST[0], &[b"h2"]).await.unwrap();
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, b"")).await.unwrap();
        Raw(stream)
    }

    /// Opens a connection whose streams have a window of one byte.
    pub async fn thirsty(gateway: &Gateway) -> Self {
        let mut raw = Self::connect(gateway).await;
        // SETTINGS_INITIAL_WINDOW_SIZE
        raw.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1])).await;
        raw
    }

    pub async fn send(&mut self, frames: &[u8]) {
        self.0.write_all(frames).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Reads frames until the outcome of a stream is known.
    pub async fn outcome(&mut self, stream: u32) -> Outcome {
        timeout(PATIENCE, self.read_outcome(stream))
            .await
            .expect("no outcome")
    }

    async fn read_outcome(&mut self, stream: u32) -> Outcome {
        let mut answer = Vec::new();
        while let Some(frame) = self.frame().await {
            let ours = frame.stream == stream;
            match frame.kind {
                GOAWAY => return Outcome::GoAway(frame.code(4)),
                RST_STREAM if ours => return Outcome::Reset(frame.code(0)),
                DATA if ours => answer.extend_from_slice(&frame.payload),
                _ => {}
            }
            if ours && matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
                return Outcome::Answer(String::from_utf8(answer).unwrap());
            }
        }
        Outcome::Closed
    }

    /// Returns the next frame; `None` at the end of the connection.
    async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// Waits until the gateway has processed all sent frames; returns `false` if the connection
    /// ends instead.
    pub async fn settle(&mut self) -> bool {
        self.0.write_all(&frame(PING, 0, 0, b"settled?")).await.is_ok()
            && timeout(PATIENCE, async {
                while let Some(frame) = self.frame().await {
                    if (frame.kind, frame.flags) == (PING, ACK) {
                        return true;
                    }
                }
                false
            })
            .await
            .expect("no answer to a PING")
    }

    /// Reads a stream's response byte by byte, at most a thousand bytes per second, until the
    /// stream is reset. Returns the error code.
    pub async fn drip(&mut self, stream: u32) -> u32 {
        let reset = timeout(PATIENCE, async {
            loop {
                let frame = self.frame().await.expect("the connection ended");
                match frame.kind {
                    RST_STREAM if frame.stream == stream => return frame.code(0),
                    DATA if frame.stream == stream => {
                        // Without a delay, the client would read a whole piece within its timeout.
                        sleep(Duration::from_millis(1)).await;
                        self.send(&window_update(stream, 1)).await;
                    }
                    _ => {}
                }
            }
        });
        reset.await.expect("the answer goes on and on")
    }

    /// Reads until the connection ends, which must happen without an error.
    pub async fn end(mut self) {
        let mut rest = Vec::new();
        let end = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        end.expect("the connection is still open").unwrap();
    }
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn code(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// Encodes the head or the trailers of a message.
pub fn headers(stream: u32, fields: &[Field<'_>], ended: bool) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | u8::from(ended), stream, &block(fields))
}

/// Encodes the start of a head that is continued.
pub fn begun_headers(stream: u32, fields: &[Field<'_>]) -> Vec<u8> {
    frame(HEADERS, END_STREAM, stream, &block(fields))
}

/// Encodes a further part of a head that is continued.
pub fn continuation(stream: u32, fields: &[Field<'_>]) -> Vec<u8> {
    frame(CONTINUATION, 0, stream, &block(fields))
}

pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn block(fields: &[Field<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        // A literal that is never indexed, with a new name, without Huffman coding (RFC 7541
        // section 6.2.3).
        block.push(0x10);
        write_text(name, &mut block);
        write_text(value, &mut block);
    }
    block
}

pub fn data(stream: u32, data: &str, ended: bool) -> Vec<u8> {
    frame(DATA, u8::from(ended), stream, data.as_bytes())
}

pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A string that is not Huffman-coded (RFC 7541 sections 5.1 and 5.2).
fn write_text(text: &str, out: &mut Vec<u8>) {
    match u8::try_from(text.len()) {
        Ok(length @ ..0x7f) => out.push(length),
        _ => {
            out.push(0x7f);
            let mut rest = text.len() - 0x7f;
            while rest >= 0x80 {
                out.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
                rest /= 0x80;
            }
            out.push(u8::try_from(rest).unwrap());
        }
    }
    out.extend_from_slice(text.as_bytes());
}
