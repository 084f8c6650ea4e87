use rand::RngCore;

/// The ID of an exchange: a UUID version 7 (RFC 9562 section 5.7) with the prefix `req_`, which
/// clients see in `x-request-id`.
///
/// It is random except for its time, so it reveals nothing about the traffic of others.
#[derive(Clone, Copy)]
pub struct RequestId([u8; RequestId::LENGTH]);

impl RequestId {
    const LENGTH: usize = 36;

    /// Creates an ID from the wall clock, in microseconds since 1970, and a random source.
    pub fn new(unix_micros: u64, random: &mut impl RngCore) -> Self {
        let mut bytes = [0u8; 16];
        random.fill_bytes(&mut bytes[6..]);
        bytes[..6].copy_from_slice(&(unix_micros / 1000).to_be_bytes()[2..]);
        bytes[6] = 0x70 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        let mut text = [0; RequestId::LENGTH];
        text[..4].copy_from_slice(b"req_");
        for (pair, byte) in text[4..].chunks_exact_mut(2).zip(bytes) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 0x0f)];
        }
        RequestId(text)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::RequestId;

    #[test]
    fn an_id_is_a_version_7_uuid_that_sorts_by_time() {
        let mut random = rand::rng();
        let early = RequestId::new(1_700_000_000_000_000, &mut random);
        let late = RequestId::new(1_700_000_001_000_000, &mut random);
        assert!(early.as_str() < late.as_str());
        assert_eq!(early.as_str().len(), 36);
        assert_eq!(&early.as_str()[16..17], "7");
        assert!("89ab".contains(&early.as_str()[20..21]));
    }
}
