"""The machine room: components, connectors, providers, wiring. It knows nothing of the web.

After the component architecture of Hunyadi 2007 (Crawler.NET, chapter 4), in modern Python. Read in this order:

1. :mod:`~gossamer.engine.sheet`, :mod:`~gossamer.engine.unit`, :mod:`~gossamer.engine.unit`: what every unit has;
2. :mod:`~gossamer.engine.ends`, :mod:`~gossamer.engine.component`: what components declare, and their kinds;
3. :mod:`~gossamer.engine.connector`, its implementations `local`, `fused`, `priority`, `remote`, and its `ends`;
4. :mod:`~gossamer.engine.wiring`, :mod:`~gossamer.engine.planning`, :mod:`~gossamer.engine.graph`: the plan, checked before anything
   starts;
5. :mod:`~gossamer.engine.units`, :mod:`~gossamer.engine.runner`, :mod:`~gossamer.engine.running`: the plan at work: start, drain, stop;
6. :mod:`~gossamer.engine.changing`: exchanged, added and removed while items flow.
"""
