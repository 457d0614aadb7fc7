"""The machine room: components, connectors, providers, wiring. It knows nothing of the web.

After the component architecture of Hunyadi 2007 (Crawler.NET, chapter 4), in modern Python. Read in this order:

1. :mod:`~gossamer.flow.sheet`, :mod:`~gossamer.flow.metrics`, :mod:`~gossamer.flow.unit`: what every unit has;
2. :mod:`~gossamer.flow.ports`, :mod:`~gossamer.flow.component`: what components declare, and their kinds;
3. :mod:`~gossamer.flow.connector`, its implementations `local`, `fused`, `priority`, `remote`, and its `ends`;
4. :mod:`~gossamer.flow.wiring`, :mod:`~gossamer.flow.planning`, :mod:`~gossamer.flow.graph`: the plan, checked before anything
   starts;
5. :mod:`~gossamer.flow.units`, :mod:`~gossamer.flow.runner`, :mod:`~gossamer.flow.running`: the plan at work: start, drain, stop;
6. :mod:`~gossamer.flow.changing`: exchanged, added and removed while items flow.
"""
