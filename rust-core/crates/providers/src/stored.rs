//! OpenAI's files and batches: what a provider keeps for whoever has its key.

/// Longest id of an object, in bytes.
const LONGEST_ID: usize = 128;

/// Whether a text can be the id of an object that a provider keeps: 1 to 128 letters, digits, `-` and `_`.
pub fn is_object_id(id: &str) -> bool {
    let is_of_ids = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_of_ids)
}

/// What is asked of files and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stored {
    /// `POST /v1/files`, a form.
    FileUpload,
    /// `GET /v1/files`.
    Files,
    /// `GET /v1/files/{id}`.
    File,
    /// `DELETE /v1/files/{id}`.
    FileDeletion,
    /// `GET /v1/files/{id}/content`, whose answer is the file.
    FileContent,
    /// `POST /v1/batches`.
    BatchCreation,
    /// `GET /v1/batches`.
    Batches,
    /// `GET /v1/batches/{id}`.
    Batch,
    /// `POST /v1/batches/{id}/cancel`.
    BatchCancellation,
}

impl Stored {
    /// All of them.
    pub const ALL: [Stored; 9] = [
        Stored::FileUpload,
        Stored::Files,
        Stored::File,
        Stored::FileDeletion,
        Stored::FileContent,
        Stored::BatchCreation,
        Stored::Batches,
        Stored::Batch,
        Stored::BatchCancellation,
    ];

    /// The method and the path, as metrics and logs name it.
    pub fn name(self) -> &'static str {
        match self {
            Stored::FileUpload => "POST /v1/files",
            Stored::Files => "GET /v1/files",
            Stored::File => "GET /v1/files/{id}",
            Stored::FileDeletion => "DELETE /v1/files/{id}",
            Stored::FileContent => "GET /v1/files/{id}/content",
            Stored::BatchCreation => "POST /v1/batches",
            Stored::Batches => "GET /v1/batches",
            Stored::Batch => "GET /v1/batches/{id}",
            Stored::BatchCancellation => "POST /v1/batches/{id}/cancel",
        }
    }

    /// The method.
    pub fn method(self) -> &'static str {
        let (method, _) = self.name().split_once(' ').unwrap_or_default();
        method
    }

    /// The path below the base of its provider, as far as the id.
    pub fn path_upstream(self) -> &'static str {
        match self.is_of_batches() {
            true => "/batches",
            false => "/files",
        }
    }

    /// What follows for an object.
    pub fn path_end(self, id: &str) -> String {
        match self {
            Stored::FileUpload | Stored::Files | Stored::BatchCreation | Stored::Batches => String::new(),
            Stored::File | Stored::FileDeletion | Stored::Batch => format!("/{id}"),
            Stored::FileContent => format!("/{id}/content"),
            Stored::BatchCancellation => format!("/{id}/cancel"),
        }
    }

    /// Whether it is about batches, not files.
    pub fn is_of_batches(self) -> bool {
        matches!(
            self,
            Stored::BatchCreation | Stored::Batches | Stored::Batch | Stored::BatchCancellation
        )
    }

    /// Whether its requests have a body.
    pub fn has_body(self) -> bool {
        matches!(self, Stored::FileUpload | Stored::BatchCreation)
    }
}
