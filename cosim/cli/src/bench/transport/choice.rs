//! Which of many connections the next message goes to, of which each has at most one request under
//! way. The end that asks takes a free one by chance; the other end answers where it was asked.

use crate::Failure;

pub(super) struct Choice {
    /// This end answers.
    answers: bool,
    /// A counter that is mixed.
    chance: u64,
    /// Connections with a request under way, of the end that asks.
    is_busy: Vec<bool>,
    /// The connection of the last message that was received.
    last: Option<usize>,
}

impl Choice {
    pub(super) fn new(connections: usize, answers: bool) -> Self {
        Self { answers, chance: 0, is_busy: vec![false; connections], last: None }
    }

    /// The connection of the next message.
    ///
    /// # Errors
    /// Every connection has a request under way; there is no request to answer.
    pub(super) fn next(&mut self) -> Result<usize, Failure> {
        if self.answers {
            return Ok(self.last.take().ok_or("no request to answer")?);
        }
        self.chance = self.chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let first = usize::try_from(self.chance >> 33)? % self.is_busy.len();
        let all = (first..self.is_busy.len()).chain(0..first);
        let free = all.into_iter().find(|at| !self.is_busy[*at]);
        let at = free.ok_or("every connection has a request under way")?;
        self.is_busy[at] = true;
        Ok(at)
    }

    /// A message was received from this connection.
    pub(super) fn received(&mut self, at: usize) {
        self.is_busy[at] = false;
        self.last = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_one_request_under_way() {
        let mut choice = Choice::new(8, false);
        let mut all: Vec<usize> = (0..8).map(|_| choice.next().expect("one is free")).collect();
        choice.next().expect_err("none is free");
        choice.received(5);
        assert_eq!(choice.next().expect("5 is free"), 5);
        assert_ne!(all, [0, 1, 2, 3, 4, 5, 6, 7], "not by chance");
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn an_answer_goes_where_the_request_came_from() {
        let mut choice = Choice::new(8, true);
        choice.next().expect_err("no request");
        choice.received(3);
        assert_eq!(choice.next().expect("a request"), 3);
        choice.next().expect_err("it was answered");
    }
}
