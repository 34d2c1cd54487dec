"""A script that uses its own functions and estimators in scikit-learn's, with data from loops."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted


class DescentRegressor(RegressorMixin, BaseEstimator):
    def __init__(self, rate=0.1, steps=150):
        self.rate = rate
        self.steps = steps

    def fit(self, X, y):
        X = check_array(X)
        self.coef_ = np.zeros(X.shape[1])
        self.intercept_ = 0.0
        for _ in range(self.steps):
            error = X @ self.coef_ + self.intercept_ - y
            self.coef_ -= self.rate * X.T @ error / len(y)
            self.intercept_ -= self.rate * error.mean()
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        check_is_fitted(self)
        return X @ self.coef_ + self.intercept_


def features(X):
    return np.column_stack([X, X[:, :2] ** 2, np.sin(X[:, 0]) * X[:, 1]])


def mean_log_error(truth, guess):
    return np.mean(np.log1p(np.abs(truth - guess)))


rng = np.random.default_rng(3)
X = rng.normal(size=(1500, 4))
y = 2 * X[:, 0] - X[:, 1] ** 2 + 0.5 * X[:, 3] + 0.1 * rng.normal(size=1500)
model = make_pipeline(FunctionTransformer(features), StandardScaler(), DescentRegressor())
scorer = make_scorer(mean_log_error, greater_is_better=False)
print(cross_val_score(model, X, y, cv=KFold(4), scoring=scorer).round(7))
print(model.fit(X, y).score(X, y), clone(model).get_params()["descentregressor__steps"])
print(np.round(model[-1].coef_, 6), Ridge().fit(features(X), y).coef_.round(5)[:3])

grid = np.logspace(-3, 2, 6)
scores = np.zeros(len(grid))
for i, alpha in enumerate(grid):
    for train, test in KFold(3).split(X):
        fitted = Ridge(alpha=alpha).fit(features(X[train]), y[train])
        scores[i] += fitted.score(features(X[test]), y[test]) / 3
print(grid[scores.argmax()], scores.round(6).tolist())

calls = np.zeros(1)


def distance(a, b):
    calls[0] += 1
    return np.sqrt(np.sum((a - b) ** 2)) + 0.1 * np.abs(a[0] - b[0])


labels = (y > 0).astype(int)
near = KNeighborsClassifier(5, metric=distance, algorithm="brute").fit(X[:120], labels[:120])
print(near.score(X[120:160], labels[120:160]), int(calls[0]) > 0, near.predict(X[200:206]))
weights = np.where(labels == 1, 2.0, 1.0)
print(Ridge().fit(X, y, sample_weight=weights).intercept_, check_array(X[::2]).flags.c_contiguous)
try:
    check_array(np.array([[1.0, np.nan]]))
except ValueError as error:
    print(type(error).__name__, "NaN" in str(error))
