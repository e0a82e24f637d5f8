package simulation

import (
	"encoding/json"
	"fmt"
	"net/http"

	"hekla.sh/hekla/test/simulation/apiserver"
)

// ask sends a request of something that is simulated, and so neither delayed nor lost.
func (d *driver) ask(as, method, path, contentType string, body any) *apiserver.Response {
	var document []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		document = b
	case string:
		document = []byte(b)
	default:
		document, _ = json.Marshal(b)
	}
	r, err := http.NewRequest(method, "http://hekla.test"+path, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Accept", "application/json")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response := d.handle(as, r, document)
	d.result.Requests++
	d.note("%s: %s %s: %d%s", as, method, path, response.Code, why(response))
	return response
}

// why is what the server says about a request that it refuses.
func why(r *apiserver.Response) string {
	if r.Code < http.StatusBadRequest {
		return ""
	}
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(r.Body, &status) != nil {
		return ""
	}
	return " " + status.Message
}

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"
)

func (d *driver) create(as, path string, object any) bool {
	return d.ask(as, http.MethodPost, path, jsonType, object).Code < http.StatusBadRequest
}

func (d *driver) merge(as, path string, patch any) bool {
	return d.ask(as, http.MethodPatch, path, mergeType, patch).Code < http.StatusBadRequest
}

func (d *driver) apply(as, path string, object any) bool {
	return d.ask(as, http.MethodPatch, path+"?fieldManager="+as+"&force=true", applyType, object).Code < http.StatusBadRequest
}

// delete deletes an object; options is a DeleteOptions.
func (d *driver) delete(as, path string, options map[string]any) bool {
	if options == nil {
		options = map[string]any{}
	}
	options["apiVersion"], options["kind"] = "v1", "DeleteOptions"
	code := d.ask(as, http.MethodDelete, path, jsonType, options).Code
	return code < http.StatusBadRequest || code == http.StatusNotFound
}

// must is for what a run cannot go on without.
func must(ok bool, what string) {
	if !ok {
		panic(fmt.Sprintf("the simulation itself is broken: %s", what))
	}
}
