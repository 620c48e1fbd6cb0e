package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Survey is one measurement of the radio links of a network, before the first run
// of a campaign that meets it.
type Survey struct {
	CampaignID int64        `db:"campaign_id"`
	Survey     int          `db:"survey"`     // 1, 2, … within the campaign
	Network    string       `db:"network"`    // names the network: that of runs in their fact "network"
	Repetition int          `db:"repetition"` // of the first run that meets it
	Params     Params       `db:"params"`     // of the same
	Started    Stamp        `db:"started_utc"`
	Nodes      Strings      `db:"nodes"` // names, in the order of the nodes
	Mute       Path         `db:"mute"`  // nodes that took no part
	Probes     int          `db:"probes"`
	PeriodS    float64      `db:"period_s"`
	Size       int64        `db:"size_bytes"`
	Rate       int64        `db:"rate_bps"`
	Links      []SurveyLink `db:"-"`
}

// SurveyLink is what arrived of one node's probes at another. A direction in
// which nothing arrived may be left out.
type SurveyLink struct {
	CampaignID int64 `db:"campaign_id"`
	Survey     int   `db:"survey"`
	Src        int   `db:"src"`
	Dst        int   `db:"dst"`
	Received   int   `db:"received"`
	// Lost are the numbers of the probes that did not arrive (JSON), missing where
	// only the counts are known.
	Lost Opt[string] `db:"lost"`
}

// LostOf is the value of SurveyLink.Lost; nil is missing.
func LostOf(lost []int) Opt[string] {
	if lost == nil {
		return None[string]()
	}
	b, err := json.Marshal(lost)
	if err != nil {
		panic("store: " + err.Error()) // whole numbers
	}
	return Some(string(b))
}

// LostProbes reads Lost; nil where it is missing.
func (l *SurveyLink) LostProbes() ([]int, error) {
	if !l.Lost.OK {
		return nil, nil
	}
	out := []int{}
	if err := json.Unmarshal([]byte(l.Lost.V), &out); err != nil {
		return nil, fmt.Errorf("survey %d of campaign %d, link %d to %d: lost: %w", l.Survey, l.CampaignID, l.Src, l.Dst, err)
	}
	return out, nil
}

// SaveSurvey adds a survey to its campaign with the next number, which it sets in
// the survey and its links, in one transaction.
func (s *Store) SaveSurvey(ctx context.Context, v *Survey) error {
	return s.inTx(ctx, fmt.Sprintf("save the links of campaign %d", v.CampaignID), func(tx *sqlx.Tx) error {
		if err := tx.GetContext(ctx, &v.Survey, "SELECT 1 + coalesce(max(survey), 0) FROM surveys WHERE campaign_id = ?", v.CampaignID); err != nil {
			return err
		}
		for i := range v.Links {
			v.Links[i].CampaignID, v.Links[i].Survey = v.CampaignID, v.Survey
		}
		if err := insertMany(ctx, tx, surveysTable, []Survey{*v}, nil); err != nil {
			return err
		}
		return insertMany(ctx, tx, surveyLinksTable, v.Links, nil)
	})
}

// Surveys returns what was measured of the links of a campaign, in order.
func (s *Store) Surveys(ctx context.Context, campaignID int64) ([]Survey, error) {
	var out []Survey
	if err := s.r.SelectContext(ctx, &out, "SELECT * FROM surveys WHERE campaign_id = ? ORDER BY survey", campaignID); err != nil {
		return nil, s.wrap("read surveys", err)
	}
	for i := range out {
		v := &out[i]
		if err := s.r.SelectContext(ctx, &v.Links, "SELECT * FROM survey_links WHERE campaign_id = ? AND survey = ? ORDER BY src, dst", v.CampaignID, v.Survey); err != nil {
			return nil, s.wrap("read survey_links", err)
		}
	}
	return out, nil
}
