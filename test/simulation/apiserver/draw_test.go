package apiserver

import (
	"net/url"
	"strings"

	"pgregory.net/rapid"
)

// names are the names of the objects of a run.
func (k tried) names(space string) []string {
	if strings.Contains(k.path, "SPACE") {
		return []string{"a", "b"}
	}
	return []string{space + "-a", space + "-b"}
}

// first creates a good object.
func (k tried) first(space string) call {
	c := call{method: "POST", path: strings.ReplaceAll(k.path, "SPACE", space), kind: "application/json"}
	name := k.names(space)[0]
	c.object, c.body = c.path+"/"+name, strings.NewReplacer("NAME", name, "SPACE", space).Replace(k.bodies[0])
	return c
}

func (k tried) selectors() (queries []string) {
	for _, of := range k.fields {
		queries = append(queries, "fieldSelector="+url.QueryEscape(of))
	}
	return queries
}

// draw draws a request about a kind.
func (k tried) draw(t *rapid.T, space string) call {
	name := rapid.SampledFrom(k.names(space)).Draw(t, "name")
	fill := func(text string) string {
		return strings.NewReplacer("NAME", name, "SPACE", space).Replace(text)
	}
	c := call{path: fill(k.path), kind: "application/json"}
	c.object = c.path + "/" + name
	var query []string
	pick := func(label string, from []string) string { return rapid.SampledFrom(from).Draw(t, label) }
	chance := func(label string, oneIn int) bool { return rapid.IntRange(0, oneIn-1).Draw(t, label) == oneIn-1 }
	switch verb := rapid.SampledFrom([]string{"create", "create", "create", "get", "list", "update", "patch", "patch", "apply", "status", "status", "delete", "delete", "collection", "special", "special"}).Draw(t, "verb"); verb {
	case "create":
		c.method, c.body = "POST", fill(pick("body", k.bodies))
	case "get":
		c.method, c.path, c.accept = "GET", c.object, pick("accept", []string{"", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/xml"})
	case "list":
		c.method = "GET"
		query = k.drawList(t, pick, chance)
		c.accept = pick("accept", []string{"", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
	case "update":
		c.method, c.path = "PUT", c.object
		c.body = strings.Replace(fill(pick("body", k.bodies)), `"metadata":{`, `"metadata":{"resourceVersion":"VERSION",`, 1)
		if chance("unversioned", 4) {
			c.body = strings.Replace(c.body, `"resourceVersion":"VERSION",`, "", 1)
		}
		c.version = rapid.IntRange(0, 2).Draw(t, "stale") / 2
		if len(k.status) > 0 && chance("of status", 4) {
			c.path += "/status"
		}
	case "patch":
		k.patch(&c, pick, fill)
	case "apply":
		c.method, c.path, c.kind = "PATCH", c.object, "application/apply-patch+yaml"
		c.body = fill(pick("applied", append([]string{`{"metadata":{"labels":{"app":"x"}}}`}, k.applied...)))
		if !chance("nameless", 10) {
			query = append(query, "fieldManager="+pick("manager", []string{"m1", "m2"}))
		}
		if chance("forced", 2) {
			query = append(query, "force=true")
		}
	case "status":
		if len(k.status) == 0 {
			c.method, c.path = "GET", c.object+"/status"
			break
		}
		c.method, c.path, c.kind = "PATCH", c.object+"/status", "application/merge-patch+json"
		c.body = fill(pick("status", k.status))
	case "delete":
		c.method, c.path = "DELETE", c.object
		c.body = pick("options", []string{"", "", `{"gracePeriodSeconds":0}`, `{"gracePeriodSeconds":9}`, `{"preconditions":{"uid":"1"}}`, `{"preconditions":{"resourceVersion":"VERSION"}}`, `{"propagationPolicy":"Foreground"}`, `{"propagationPolicy":"Orphan"}`, `{"propagationPolicy":"Never"}`, `{"gracePeriodSeconds":-3}`})
		c.version = rapid.IntRange(0, 1).Draw(t, "stale")
	case "collection":
		c.method = "DELETE"
		query = append(query, "labelSelector="+url.QueryEscape(pick("selector", []string{"app=x", "app=y", "app in (", "role"})))
		if !strings.Contains(k.path, "SPACE") {
			c.method, query = "GET", query[:0] // other worlds have their objects there, too
			c.path = c.object
		}
	case "special":
		k.special(&c, pick, fill)
	}
	if c.method != "GET" && chance("dry run", 8) {
		query = append(query, "dryRun=All")
	}
	if c.method != "GET" && chance("strict", 8) {
		query = append(query, "fieldValidation="+pick("validation", []string{"Strict", "Ignore", "Sometimes"}))
	}
	c.query = strings.Join(query, "&")
	return c
}

// patch draws a patch of one of four types, of which one is none.
func (k tried) patch(c *call, pick func(string, []string) string, fill func(string) string) {
	c.method, c.path = "PATCH", c.object
	switch pick("type", []string{"merge", "strategic", "json", "json-patch"}) {
	case "merge":
		c.kind = "application/merge-patch+json"
		c.body = fill(pick("patch", append(append([]string{}, general...), k.merges...)))
	case "strategic":
		c.kind = "application/strategic-merge-patch+json"
		c.body = fill(pick("patch", append(append([]string{}, general...), k.merges...)))
	case "json-patch":
		c.kind = "application/json-patch+json"
		c.body = pick("patch", jsonPatches)
	default:
		c.body = "{}"
	}
}

func (k tried) drawList(t *rapid.T, pick func(string, []string) string, chance func(string, int) bool) (query []string) {
	if !strings.Contains(k.path, "SPACE") {
		query = append(query, "labelSelector=app%3Dnone")
	}
	if chance("labels", 3) {
		query = append(query, "labelSelector="+url.QueryEscape(pick("selector", []string{"app=x", "app!=x", "app in (x,y)", "!app", "app in ("})))
	}
	if chance("fields", 3) && len(k.fields) > 0 {
		query = append(query, "fieldSelector="+url.QueryEscape(pick("fields", k.fields)))
	}
	if chance("limited", 3) {
		query = append(query, "limit=1")
	}
	switch pick("version", []string{"", "", "not older", "exact", "legacy", "future", "nonsense", "no match"}) {
	case "not older":
		query = append(query, "resourceVersion=LISTED", "resourceVersionMatch=NotOlderThan")
	case "exact":
		query = append(query, "resourceVersion=LISTED", "resourceVersionMatch=Exact")
	case "legacy":
		query = append(query, "resourceVersion=LISTED")
	case "nonsense":
		query = append(query, "resourceVersion=x")
	case "no match":
		query = append(query, "resourceVersionMatch=Exact")
	}
	return query
}

// special draws a request that only this kind has.
func (k tried) special(c *call, pick func(string, []string) string, fill func(string) string) {
	switch {
	case strings.HasSuffix(k.path, "/pods"):
		c.method = "POST"
		switch pick("special", []string{"binding", "binding", "eviction"}) {
		case "binding":
			c.path = c.object + "/binding"
			c.body = fill(pick("binding", []string{
				`{"metadata":{"name":"NAME"},"target":{"kind":"Node","name":"n1"}}`, `{"metadata":{"name":"NAME","uid":"1"},"target":{"kind":"Node","name":"n1"}}`,
				`{"metadata":{"name":"other"},"target":{"name":"n1"}}`, `{"metadata":{"name":"NAME","annotations":{"a":"b"}},"target":{"kind":"Node","name":"n2"}}`, `{"metadata":{"name":"NAME"},"target":{"kind":"Pod","name":""}}`,
			}))
		default:
			c.path = c.object + "/eviction"
			c.body = fill(pick("eviction", []string{
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"}}`, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"},"deleteOptions":{"gracePeriodSeconds":0}}`,
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"},"deleteOptions":{"preconditions":{"uid":"1"}}}`, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other"}}`,
			}))
		}
	case k.scale:
		c.method, c.path, c.kind = "PATCH", c.object+"/scale", "application/merge-patch+json"
		c.body = pick("scale", []string{`{"spec":{"replicas":3}}`, `{"spec":{"replicas":-3}}`})
		c.object = ""
	default:
		c.method, c.path = pick("method", []string{"GET", "POST", "PUT"}), c.object+"/"+pick("part", []string{"scale", "nonsense", "status"})
		c.body = fill(pick("body", k.bodies))
	}
}
