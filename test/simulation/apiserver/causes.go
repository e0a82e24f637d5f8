package apiserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sortCauses puts what is wrong with an object, or who else manages its fields, into the order of the fields. The API
// server validates custom resources and compares managers by walking maps, so that the order would be another one each
// time.
func (r *Response) sortCauses() {
	if r.Code != http.StatusUnprocessableEntity && r.Code != http.StatusConflict {
		return
	}
	var status metav1.Status
	if json.Unmarshal(r.Body, &status) != nil || status.Details == nil || len(status.Details.Causes) < 2 {
		return
	}
	slices.SortStableFunc(status.Details.Causes, func(a, b metav1.StatusCause) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	if before, _, isList := strings.Cut(status.Message, " is invalid: ["); isList {
		var parts []string
		for _, cause := range status.Details.Causes {
			if part := cause.Field + ": " + cause.Message; !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
		status.Message = before + " is invalid: [" + strings.Join(parts, ", ") + "]"
	}
	if body, err := json.Marshal(status); err == nil {
		r.Body = append(body, '\n')
	}
}
