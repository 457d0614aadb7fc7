"""A crawl for the suite of clusters."""

from collections.abc import Callable
from pathlib import Path

from gossamer.agents.contract import ClusterNeeds
from gossamer.agents.ended import noted_end
from gossamer.agents.masters import Masters
from gossamer.agents.process import AgentOrders, write_orders
from gossamer.agents.run import AgentNews
from gossamer.agents.supervision import News
from gossamer.crawls.control.messages import Stop
from gossamer.crawls.control.server import AgentLine, AgentSilent
from gossamer.crawls.options import all_options
from gossamer.crawls.plan import CrawlPlan
from gossamer.engine.sheet import build
from gossamer.engine.wiring import write
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.members import ensure_crawl_id, write_members
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.agents import agent_name


class TwoAgents:
    """A crawl of two agents, and its orders. Nothing listens at its only seed, so that its agents stay at work and ask no host."""

    agents = (agent_name(0), agent_name(1))

    def __init__(self, directory: Path, folder: Path, report: Callable[[str], None] = print, **options: object) -> None:
        """`directory` is made; `folder` is an empty one, closed to others, with a short path."""
        given = {"output": str(directory), "agents": len(self.agents), "linger": HUNG_AFTER, **options}
        self.needs = ClusterNeeds(directory, folder, build(all_options(), given), report)
        graph = CrawlPlan(["http://127.0.0.1:1/"], self.needs.options, None, {}, None, ()).graph
        (directory / STATE_DIRECTORY).mkdir(parents=True)
        write(directory / CRAWL_FILE, graph.wiring, is_private=True)
        ensure_crawl_id(directory, 0.0)
        share_secret(directory / STATE_DIRECTORY)
        write_members(directory, self.agents)
        write_orders(folder, AgentOrders(str(directory), self.agents), graph.wiring, Masters())

    async def life(self, agent: str) -> str:
        line = AgentLine(self.needs.directory, agent)
        try:
            news: AgentNews = await line.told(News(True), AgentNews)
        except AgentSilent:
            return ""
        finally:
            line.close()
        return news.report.life

    async def stop(self, agent: str) -> None:
        line = AgentLine(self.needs.directory, agent)
        await line.do(Stop())
        line.close()

    def has_told_its_end(self, agent: str) -> bool:
        end = noted_end(self.needs.directory, agent)
        return end is not None and end.is_clean
