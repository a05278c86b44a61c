"""Choose a learner and its strength by cross-validation, with weights routed through a pipeline.

Run: python examples/grid_search.py
"""

from __future__ import annotations

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import hopefear
from hopefear.data.generators import sparse_linear


def main() -> None:
    problem = sparse_linear(1500, 400, per_row=(10, 30), true_weights=60, seed=1)
    data = problem.dataset()
    X, y = data.to_csr(), data.rows.labels
    weights = np.where(y == 1, 2.0, 1.0)

    with sklearn.config_context(enable_metadata_routing=True):
        classifier = hopefear.Classifier(epochs=3).set_fit_request(sample_weight=True)
        classifier.set_score_request(sample_weight=True)
        search = GridSearchCV(
            make_pipeline(MaxAbsScaler(), classifier),
            [
                {"classifier__learner": ["adagrad-rda"], "classifier__l1": [1e-4, 1e-3, 1e-2]},
                {"classifier__learner": ["vrda"], "classifier__averaging": ["last", "averaged"]},
                {"classifier__learner": ["pa"], "classifier__C": [0.01, 0.1]},
            ],
            cv=3,
        )
        search.fit(X, y, sample_weight=weights)

    results = search.cv_results_
    for row in np.argsort(results["rank_test_score"]):
        choice = results["params"][row]
        settings = ", ".join(f"{key.split('__')[1]}={value}" for key, value in choice.items())
        print(f"{100 * results['mean_test_score'][row]:.2f}  {settings}")
    best = search.best_estimator_[-1]
    print("best:", best.model_.signature)
    print(f"it keeps {np.count_nonzero(best.coef_)} weights; the truth has 60")


if __name__ == "__main__":
    main()
