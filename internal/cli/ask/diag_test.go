package ask

import (
	"testing"
)

func TestADiagnosisSaysToTypeWhatWasTyped(t *testing.T) {
	const said = `{"answer":{"health":{"complaints":[{"fault":"f","next":"hekla queue create q","of":12345678901234567},{"fault":"g","next":"kubectl get nodes"}]},"later":true},"kind":"Diagnosis"}`
	for name, tt := range map[string]struct{ raw, want string }{
		"what the scheduler says":   {said, `{"answer":{"health":{"complaints":[{"fault":"f","next":"kubectl hekla queue create q","of":12345678901234567},{"fault":"g","next":"kubectl get nodes"}]},"later":true},"kind":"Diagnosis"}`},
		"one that has no complaint": {`{"answer":{"health":{}}}`, `{"answer":{"health":{}}}`},
	} {
		p := printer{program: "kubectl hekla"}
		if got, err := calledIn([]byte(tt.raw), p.called); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
