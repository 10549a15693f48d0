//! Templates in Kerchunk's references: text with `{{expressions}}`. We support the simplest expressions of Jinja.
//!
//! These are names, integers, quoted text, `+ - * // %`, brackets, and templates called with named values:
//! `{{f(c='text')}}`.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::files::invalid;
use crate::error::Error;

/// The deepest nesting of brackets.
const MAX_DEPTH: usize = 32;
/// No sensible name of a file or key is longer.
const MAX_TEXT_NBYTES: usize = 1 << 16;
/// How many bytes and values all templates of one file may take together.
const MAX_WORK: usize = 1 << 28;

/// A value in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expanded {
    Integer(i64),
    Text(String),
}

/// The templates of a reference file, by name.
pub(super) struct Templates {
    named: BTreeMap<String, String>,
    work: Cell<usize>,
}

type Values = BTreeMap<String, Expanded>;

impl Templates {
    pub fn new(named: BTreeMap<String, String>) -> Self {
        Self { named, work: Cell::new(0) }
    }

    /// A text with its expressions replaced by their values.
    pub fn filled(&self, text: &str, values: &Values) -> Result<String, Error> {
        self.filled_with(text, &|name| {
            let plain = |template: &String| (!template.contains("{{")).then(|| template.clone());
            let known = values.get(name).cloned();
            known.or_else(|| self.named.get(name).and_then(plain).map(Expanded::Text))
        })
    }

    fn filled_with(&self, text: &str, value: &dyn Fn(&str) -> Option<Expanded>) -> Result<String, Error> {
        if !["{{", "{%", "{#"].into_iter().any(|mark| text.contains(mark)) {
            return Ok(text.to_owned()); // the common case, whatever its length
        }
        if text.contains("{%") || text.contains("{#") {
            return Err(Error::unsupported(format!("the template {text:?}")));
        }
        self.spend(text.len())?;
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (expression, after) =
                after.split_once("}}").ok_or_else(|| invalid(format!("{text:?}: {{{{ without }}}}")))?;
            filled.push_str(before);
            let mut reader = Expression { templates: self, whole: expression, rest: expression, value };
            match reader.all()? {
                Expanded::Integer(number) => filled.push_str(&number.to_string()),
                Expanded::Text(text) => filled.push_str(&text),
            }
            if filled.len() > MAX_TEXT_NBYTES {
                return Err(Error::TooMany { what: "bytes of a template", limit: MAX_TEXT_NBYTES as u64 });
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// A template that takes values.
    fn called(&self, name: &str, values: &Values) -> Result<Expanded, Error> {
        let template =
            self.named.get(name).ok_or_else(|| invalid(format!("there is no template {name:?}")))?;
        self.filled_with(template, &|name| values.get(name).cloned()).map(Expanded::Text)
    }

    fn spend(&self, work: usize) -> Result<(), Error> {
        self.work.set(self.work.get().saturating_add(work));
        if self.work.get() > MAX_WORK {
            return Err(Error::TooMany { what: "steps of filling templates", limit: MAX_WORK as u64 });
        }
        Ok(())
    }
}

/// The rest of an expression.
struct Expression<'e> {
    templates: &'e Templates,
    whole: &'e str,
    rest: &'e str,
    value: &'e dyn Fn(&str) -> Option<Expanded>,
}

impl<'e> Expression<'e> {
    fn all(&mut self) -> Result<Expanded, Error> {
        let value = self.sum(0)?;
        if self.rest.trim().is_empty() { Ok(value) } else { Err(self.unsupported()) }
    }

    fn sum(&mut self, depth: usize) -> Result<Expanded, Error> {
        let mut left = self.product(depth)?;
        loop {
            let operator = if self.takes("+") {
                "+"
            } else if self.takes("-") {
                "-"
            } else {
                return Ok(left);
            };
            let right = self.product(depth)?;
            left = self.combined(operator, left, right)?;
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expanded, Error> {
        let mut left = self.atom(depth)?;
        loop {
            let operators = ["**", "*", "//", "%"];
            let Some(operator) = operators.into_iter().find(|operator| self.takes(operator)) else {
                return Ok(left);
            };
            let right = self.atom(depth)?;
            left = self.combined(operator, left, right)?;
        }
    }

    fn combined(&self, operator: &str, left: Expanded, right: Expanded) -> Result<Expanded, Error> {
        let (left, right) = match (left, right) {
            (Expanded::Integer(left), Expanded::Integer(right)) => (left, right),
            (Expanded::Text(left), Expanded::Text(right)) if operator == "+" => {
                return Ok(Expanded::Text(left + &right));
            }
            _ => return Err(self.unsupported()),
        };
        let value = match operator {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "//" => floor_division(left, right),
            "%" => floor_division(left, right).and_then(|times| left.checked_sub(times.checked_mul(right)?)),
            _ => return Err(self.unsupported()),
        };
        let value = value.ok_or_else(|| invalid(format!("{{{{{}}}}} has no value", self.whole)))?;
        Ok(Expanded::Integer(value))
    }

    fn atom(&mut self, depth: usize) -> Result<Expanded, Error> {
        self.templates.spend(1)?;
        if depth > MAX_DEPTH {
            return Err(self.unsupported());
        }
        if self.takes("-") {
            let negated = self.atom(depth + 1)?;
            return self.combined("-", Expanded::Integer(0), negated);
        }
        if self.takes("(") {
            let value = self.sum(depth + 1)?;
            return if self.takes(")") { Ok(value) } else { Err(self.unsupported()) };
        }
        for quote in ["'", "\""] {
            if self.takes(quote) {
                let (text, rest) = self.rest.split_once(quote).ok_or_else(|| self.unsupported())?;
                self.rest = rest;
                let plain = Expanded::Text(text.to_owned());
                return if text.contains('\\') { Err(self.unsupported()) } else { Ok(plain) };
            }
        }
        let word = self.word();
        if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            return word.parse().map(Expanded::Integer).map_err(|_| self.unsupported());
        }
        if word.is_empty() {
            return Err(self.unsupported());
        }
        if self.takes("(") {
            return self.call(word, depth);
        }
        let known = (self.value)(word);
        known.ok_or_else(|| invalid(format!("{{{{{}}}}}: there is no value {word:?}", self.whole)))
    }

    /// `f(name=value, …)`, after the opening bracket.
    fn call(&mut self, name: &str, depth: usize) -> Result<Expanded, Error> {
        let mut values = Values::new();
        while !self.takes(")") {
            let argument = self.word().to_owned();
            if argument.is_empty() || !self.takes("=") {
                return Err(self.unsupported());
            }
            values.insert(argument, self.sum(depth + 1)?);
            if !self.takes(",") && !self.rest.trim_start().starts_with(')') {
                return Err(self.unsupported());
            }
        }
        self.templates.called(name, &values)
    }

    /// Consumes a sign if it comes next. Returns whether it did.
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &'e str {
        let text = self.rest.trim_start();
        let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        self.rest = rest;
        word
    }

    fn unsupported(&self) -> Error {
        Error::unsupported(format!("the template expression {{{{{}}}}}", self.whole))
    }
}

/// Rounds down, as Python does.
fn floor_division(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let is_cut = left.checked_rem(right)? != 0 && (left < 0) != (right < 0);
    quotient.checked_sub(i64::from(is_cut))
}
