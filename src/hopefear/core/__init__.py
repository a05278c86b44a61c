"""The parts of a learner and where they meet: interfaces, components, averages, learners."""
