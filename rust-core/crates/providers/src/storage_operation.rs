//! OpenAI's files and batches, which a provider stores for the account of a key.

/// Maximum length of an object id, in bytes.
const MAX_ID_LEN: usize = 128;

/// Whether a text is a valid id of a stored object: 1 to 128 letters, digits, `-` and `_`.
pub fn is_object_id(id: &str) -> bool {
    let is_of_ids = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_ID_LEN).contains(&id.len()) && id.bytes().all(is_of_ids)
}

/// An operation on files or batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StorageOperation {
    /// `POST /v1/files`, a form.
    FileUpload,
    /// `GET /v1/files`.
    FileList,
    /// `GET /v1/files/{id}`.
    FileRetrieval,
    /// `DELETE /v1/files/{id}`.
    FileDeletion,
    /// `GET /v1/files/{id}/content`, which responds with the file.
    FileContent,
    /// `POST /v1/batches`.
    BatchCreation,
    /// `GET /v1/batches`.
    BatchList,
    /// `GET /v1/batches/{id}`.
    BatchRetrieval,
    /// `POST /v1/batches/{id}/cancel`.
    BatchCancellation,
}

impl StorageOperation {
    /// All operations.
    pub const ALL: [StorageOperation; 9] = [
        StorageOperation::FileUpload,
        StorageOperation::FileList,
        StorageOperation::FileRetrieval,
        StorageOperation::FileDeletion,
        StorageOperation::FileContent,
        StorageOperation::BatchCreation,
        StorageOperation::BatchList,
        StorageOperation::BatchRetrieval,
        StorageOperation::BatchCancellation,
    ];

    /// Returns the method and the path, as metrics and logs name it.
    pub fn name(self) -> &'static str {
        match self {
            StorageOperation::FileUpload => "POST /v1/files",
            StorageOperation::FileList => "GET /v1/files",
            StorageOperation::FileRetrieval => "GET /v1/files/{id}",
            StorageOperation::FileDeletion => "DELETE /v1/files/{id}",
            StorageOperation::FileContent => "GET /v1/files/{id}/content",
            StorageOperation::BatchCreation => "POST /v1/batches",
            StorageOperation::BatchList => "GET /v1/batches",
            StorageOperation::BatchRetrieval => "GET /v1/batches/{id}",
            StorageOperation::BatchCancellation => "POST /v1/batches/{id}/cancel",
        }
    }

    /// Returns the HTTP method.
    pub fn method(self) -> &'static str {
        let (method, _) = self.name().split_once(' ').unwrap_or_default();
        method
    }

    /// Returns the path below the provider's base URL, up to the id.
    pub fn upstream_path(self) -> &'static str {
        match self.is_batch_operation() {
            true => "/batches",
            false => "/files",
        }
    }

    /// Returns the rest of the path for an object.
    pub fn path_suffix(self, id: &str) -> String {
        match self {
            StorageOperation::FileUpload
            | StorageOperation::FileList
            | StorageOperation::BatchCreation
            | StorageOperation::BatchList => String::new(),
            StorageOperation::FileRetrieval
            | StorageOperation::FileDeletion
            | StorageOperation::BatchRetrieval => {
                format!("/{id}")
            }
            StorageOperation::FileContent => format!("/{id}/content"),
            StorageOperation::BatchCancellation => format!("/{id}/cancel"),
        }
    }

    /// Whether it is an operation on batches rather than files.
    pub fn is_batch_operation(self) -> bool {
        matches!(
            self,
            StorageOperation::BatchCreation
                | StorageOperation::BatchList
                | StorageOperation::BatchRetrieval
                | StorageOperation::BatchCancellation
        )
    }

    /// Whether requests have a body.
    pub fn has_body(self) -> bool {
        matches!(
            self,
            StorageOperation::FileUpload | StorageOperation::BatchCreation
        )
    }
}
