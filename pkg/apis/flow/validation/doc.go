// Package validation says what is wrong with a JobFlow of flow.volcano.sh, with field and value, as far as its spec
// alone shows it. The webhooks and the JobFlow controller ask it, so that both refuse the same.
//
// The one function is [ValidateJobFlow]. It takes time linear in the flows and what they depend on.
//
// It must not know JobTemplates, Jobs or a client.
package validation
