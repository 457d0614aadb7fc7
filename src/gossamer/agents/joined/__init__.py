"""Agents on machines of their own, which people start there: `gossamer agent --join HOST:PORT`.

Place in the flow: `--cluster joined` has a :class:`~gossamer.agents.joined.welcoming.JoinedCluster` beside the supervisor. It
listens, and each machine has a :class:`~gossamer.agents.joined.machine.JoinedMachine`, which dials, and runs an agent there by the
same program as everywhere. One sealed connection for each machine (:mod:`~gossamer.agents.joined.link`) carries orders, the
questions of the supervisor and their answers, and the addresses at which agents reach each other. URLs go from agent to agent.

Promises: a stranger who does not know the secret learns nothing, and keeps no honest machine out; only bytes cross, and each is
judged; an agent that no supervisor asks pauses, and is never stopped for that.

Open first: :mod:`~gossamer.agents.joined.link`.
"""
