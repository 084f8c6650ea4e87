//! Command-line arguments: `--name value`, each at most once except `--header`.

/// What stands on the command line after the name of the subcommand.
pub struct Arguments(Vec<(String, String)>);

impl Arguments {
    /// Reads pairs.
    ///
    /// # Errors
    /// A word that is not `--name value`.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut pairs = Vec::new();
        while let Some(word) = words.next() {
            let name = word
                .strip_prefix("--")
                .ok_or_else(|| format!("{word}: expected --name value"))?;
            let value = words.next().ok_or_else(|| format!("--{name} needs a value"))?;
            pairs.push((name.to_owned(), value));
        }
        Ok(Self(pairs))
    }

    /// All values of an argument.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of an argument that has to be there.
    ///
    /// # Errors
    /// It is missing.
    pub fn text(&self, name: &str) -> Result<&str, String> {
        self.all(name)
            .next()
            .ok_or_else(|| format!("--{name} is missing"))
    }

    /// A number that has to be there.
    ///
    /// # Errors
    /// It is missing, or not a whole number.
    pub fn number(&self, name: &str) -> Result<u64, String> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| format!("--{name}: {text} is not a whole number"))
    }
}
