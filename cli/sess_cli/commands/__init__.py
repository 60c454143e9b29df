"""The verbs of `sess`; related ones share a module. Heavy imports wait until one is called."""
