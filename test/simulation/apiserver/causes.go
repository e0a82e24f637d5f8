package apiserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sortCauses puts what is wrong with an object into the order of the fields. The API server validates custom resources
// by walking maps, so that the order would be another one each time.
func sortCauses(response *Response) {
	if response.Code != http.StatusUnprocessableEntity {
		return
	}
	var status metav1.Status
	if json.Unmarshal(response.Body, &status) != nil || status.Details == nil || len(status.Details.Causes) < 2 {
		return
	}
	before, _, isList := strings.Cut(status.Message, " is invalid: [")
	if !isList {
		return
	}
	slices.SortStableFunc(status.Details.Causes, func(a, b metav1.StatusCause) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	var parts []string
	for _, cause := range status.Details.Causes {
		if part := cause.Field + ": " + cause.Message; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	status.Message = before + " is invalid: [" + strings.Join(parts, ", ") + "]"
	body, err := json.Marshal(status)
	if err != nil {
		return
	}
	response.Body = append(body, '\n')
}
