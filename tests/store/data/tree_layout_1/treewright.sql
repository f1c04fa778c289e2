BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE installation (
	id VARCHAR(32) NOT NULL, 
	namespace VARCHAR(64) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "installation" VALUES('b2ef7d3dcaf2427091e11d6fad14dbfd','default');
CREATE TABLE models (
	id VARCHAR(32) NOT NULL, 
	namespace VARCHAR(64) NOT NULL, 
	name VARCHAR(128), 
	version INTEGER, 
	created DATETIME NOT NULL, 
	description TEXT NOT NULL, 
	retention VARCHAR(16) NOT NULL, 
	body JSON NOT NULL, 
	tree_sha256 VARCHAR(64) NOT NULL, 
	data_sha256 VARCHAR(64), 
	PRIMARY KEY (id), 
	CONSTRAINT models_version UNIQUE (namespace, name, version)
);
INSERT INTO "models" VALUES('27ca65720e2d488283e17ada2a8d69ae','default','golf',1,'2026-11-30 13:47:00.442256','','data','{"algorithm": "cart", "task": "classification", "parameters": {"criterion": "gini", "selection": "criterion", "nominal": "subset", "numeric": "threshold", "threshold_value": "midpoint", "missing": "direction", "reuse_features": true, "max_depth": null, "max_leaf_nodes": null, "min_samples_split": 2, "min_samples_leaf": 1, "min_weight_leaf": 0.0, "leaf_limit": "all", "min_gain": 0.0, "empty_branches": false, "pruning": null, "class_weight": null, "priors": null, "loss": null, "monotonic": null, "seed": null}, "schema": {"features": [{"name": "outlook", "kind": "nominal", "categories": ["overcast", "rain", "sunny"]}, {"name": "temperature", "kind": "numeric"}, {"name": "humidity", "kind": "numeric"}, {"name": "windy", "kind": "boolean", "categories": [false, true]}], "target": {"name": "play", "kind": "nominal", "classes": ["no", "yes"], "positive_class": null}}, "training": {"rows": 14, "columns": 4, "data_sha256": "53fcc53f553b39459f363dd8e053fc4302032bdf58e829dde298665b5a5a6ea2", "seconds": 0.0836}, "tree": {"nodes": 11, "leaves": 6, "depth": 3}, "metrics": {"accuracy": 1.0}, "warnings": []}','d0354bf61f956eb38fb97f92b8a2fa34040c6a2014c57fc8a6b8d34045169010','d2f717420a5a6456b6797613d0041e52146b6f9d8934503f83a4bba14c73b221');
INSERT INTO "models" VALUES('0e5116707d044e2e80f465e71a2a72eb','default','hours',1,'2026-11-30 13:47:00.811676','','summary','{"algorithm": "cart", "task": "regression", "parameters": {"criterion": "variance", "selection": "criterion", "nominal": "subset", "numeric": "threshold", "threshold_value": "midpoint", "missing": "direction", "reuse_features": true, "max_depth": 3, "max_leaf_nodes": null, "min_samples_split": 2, "min_samples_leaf": 1, "min_weight_leaf": 0.0, "leaf_limit": "all", "min_gain": 0.0, "empty_branches": false, "pruning": null, "class_weight": null, "priors": null, "loss": null, "monotonic": null, "seed": null}, "schema": {"features": [{"name": "outlook", "kind": "nominal", "categories": ["overcast", "rain", "sunny"]}, {"name": "humidity", "kind": "numeric"}, {"name": "windy", "kind": "boolean", "categories": [false, true]}, {"name": "play", "kind": "nominal", "categories": ["no", "yes"]}], "target": {"name": "temperature", "kind": "numeric"}}, "training": {"rows": 14, "columns": 4, "data_sha256": "9af8f0312039ed96b51f134fa90a1e6f2e80ee64212743c179f0becbe783568d", "seconds": 0.0324}, "tree": {"nodes": 13, "leaves": 7, "depth": 3}, "metrics": {"r2": 0.8336089906700593, "mae": 1.9761904761904765, "rmse": 2.5831413139081354}, "warnings": []}','64c3800faebdff67aa95b4dfef593aa7cb6834507b5b45abff3691aa8c69d50b','7bd88a6a088d0aa9cd72525c190e84b042f3226cfbc6dce38caeb45d26272bfd');
CREATE TABLE names (
	namespace VARCHAR(64) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	last_version INTEGER NOT NULL, 
	PRIMARY KEY (namespace, name)
);
INSERT INTO "names" VALUES('default','golf',1);
INSERT INTO "names" VALUES('default','hours',1);
CREATE TABLE tags (
	model_id VARCHAR(32) NOT NULL, 
	"key" VARCHAR(128) NOT NULL, 
	namespace VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	PRIMARY KEY (model_id, "key"), 
	FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE
);
CREATE INDEX models_newest ON models (namespace, created, id);
CREATE INDEX tags_lookup ON tags (namespace, "key");
COMMIT;
