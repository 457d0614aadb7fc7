"""The marshaler of a master: it says which agent each URL goes to, in six steps (Hunyadi 2007, section 5.3.1, decision 68).

:mod:`steps` has the steps that are plain code, :mod:`component` is the filter that takes them with its providers.
"""
