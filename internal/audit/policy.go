package audit

import _ "embed" // the policy

// Policy is the audit policy for an API server, in YAML, with which its log shows what rules need.
//
//go:embed policy.yaml
var Policy string
