//! The states of a VI.

use nic_regs::vi::State;

/// What can happen to a VI's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// ViCreate.
    Create,
    /// ViConnect.
    Connect,
    /// An error, a refusal, a FIN, a dead peer.
    Stop,
    /// ViDisconnect.
    Disconnect,
    /// ViDestroy.
    Destroy,
}

/// The state after `input`, or `None` if a VI in `state` does not take it.
pub(crate) const fn transition(state: State, input: Input) -> Option<State> {
    match (state, input) {
        (State::Free, Input::Create) => Some(State::Idle),
        (State::Idle, Input::Connect) => Some(State::Connected),
        (State::Idle, Input::Destroy) => Some(State::Free),
        (State::Connected, Input::Stop) => Some(State::Error),
        (State::Idle | State::Connected | State::Error, Input::Disconnect) => Some(State::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contract_transitions_exist() {
        use Input::{Connect, Create, Destroy, Disconnect, Stop};
        use State::{Connected, Error, Free, Idle};
        let allowed = [
            (Free, Create, Idle),
            (Idle, Connect, Connected),
            (Idle, Destroy, Free),
            (Idle, Disconnect, Idle),
            (Connected, Disconnect, Idle),
            (Error, Disconnect, Idle),
            (Connected, Stop, Error),
        ];
        for state in [Free, Idle, Connected, Error] {
            for input in [Create, Connect, Stop, Disconnect, Destroy] {
                let expected = allowed.iter().find(|a| (a.0, a.1) == (state, input)).map(|a| a.2);
                assert_eq!(transition(state, input), expected, "{state:?} {input:?}");
            }
        }
    }
}
