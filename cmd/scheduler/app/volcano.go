package app

import "hekla.sh/hekla/internal/process"

// volcanoFlags are flags of Volcano's scheduler that change nothing here.
var volcanoFlags = []process.Superseded{
	{Name: "resync-period", Placeholder: "0", Reason: "the model is corrected by every event and checked by audits; nothing is read again on a timer"},
	{Name: "minimum-feasible-nodes", Placeholder: "100", Reason: "all nodes are considered"},
	{Name: "minimum-percentage-nodes-to-find", Placeholder: "5", Reason: "all nodes are considered"},
	{Name: "percentage-nodes-to-find", Placeholder: "0", Reason: "all nodes are considered"},
	{Name: "node-worker-threads", Placeholder: "20", Reason: "events of nodes need no workers"},
	{Name: "gate-removal-worker-num", Placeholder: "5", Reason: "there is no queue admission by scheduling gates yet"},
	{Name: "csi-storage", Placeholder: "true", Reason: "what drivers can store and attach always counts"},
	{Name: "ignored-provisioners", Reason: "claims are not counted as requests of a pod"},
	{Name: "plugins-dir", Reason: "plugins are compiled in, see app.NewCommand"},
	{Name: "cache-dumper", Placeholder: "true", Reason: "there is no dump of the cache on a signal"},
	{Name: "cache-dump-dir", Reason: "there is no dump of the cache on a signal"},
	{Name: "scheduler-sharding-mode", Placeholder: "none", Reason: "one scheduler serves the whole cluster"},
	{Name: "scheduler-sharding-name", Placeholder: "volcano", Reason: "one scheduler serves the whole cluster"},
}
