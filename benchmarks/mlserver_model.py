"""Run in MLServer's environment, so that the pickle is of its scikit-learn: data, depth, where the model goes."""

import sys

import joblib
import numpy as np
from sklearn.tree import DecisionTreeClassifier

source, depth, place = sys.argv[1:]
data = np.load(source)
joblib.dump(DecisionTreeClassifier(max_depth=int(depth), random_state=0).fit(data["matrix"], data["answers"]), place)
