package doctor

import "testing"

func TestEveryLackSaysWhatItCostsAndWhatToDo(t *testing.T) {
	checks := Examine(nil)
	if len(checks) == 0 {
		t.Fatal("no checks")
	}
	seen := map[string]bool{}
	for _, c := range checks {
		if seen[c.Name] {
			t.Errorf("%s is examined twice", c.Name)
		}
		seen[c.Name] = true
		if c.Found == "" {
			t.Errorf("%s: nothing found is said", c.Name)
		}
		if c.State == Lack && (c.Cost == "" || c.Remedy == "") {
			t.Errorf("%s lacks without cost or remedy: %+v", c.Name, c)
		}
	}
}

func TestReady(t *testing.T) {
	if Ready([]Check{{State: Lack, Needed: true}}) || !Ready([]Check{{State: Lack}, {State: OK, Needed: true}}) {
		t.Error("ready must depend on the needed checks alone")
	}
}
