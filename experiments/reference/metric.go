package reference

// Metric names a quantity that a report computes from goodputs. Ratios of a
// statistic are that statistic of one transport over that of the other, within
// a repetition, and then the median over the repetitions.
type Metric string

// The metrics. Those of other experiments than load30 are computed by the
// reports of those experiments.
const (
	MedianRatio    Metric = "median-ratio"    // median flow over median flow
	Q1Ratio        Metric = "q1-ratio"        // lower quartiles
	Q3Ratio        Metric = "q3-ratio"        // upper quartiles
	MeanRatio      Metric = "mean-ratio"      // means
	AggregateRatio Metric = "aggregate-ratio" // sums over all flows
	Jain           Metric = "jain"            // Jain's index of the flows' goodputs
	JainDifference Metric = "jain-difference" // index of the one minus that of the other

	MeanWorst20      Metric = "mean-goodput-worst-20" // mean over the other's 20 worst links
	MeanRatioWorst20 Metric = "mean-ratio-worst-20"
	Q1RatioAt5Hops   Metric = "q1-ratio-at-5-hops"
	ARQCost          Metric = "arq-cost"         // share lost by acknowledgements
	NoARQRatio       Metric = "no-arq-ratio"     // without acknowledgements and with txop over with and without
	LossOfCollapse   Metric = "loss-of-collapse" // loss at which goodput is below a tenth
	ShareAt20        Metric = "share-at-20"      // goodput at 20 % loss over that at none
	ShareAt80        Metric = "share-at-80"
	LinearFitR2      Metric = "linear-fit-r2" // of goodput over loss, 0 to 80 %
)

var metrics = []Metric{
	MedianRatio, Q1Ratio, Q3Ratio, MeanRatio, AggregateRatio, Jain, JainDifference,
	MeanWorst20, MeanRatioWorst20, Q1RatioAt5Hops, ARQCost, NoARQRatio, LossOfCollapse, ShareAt20, ShareAt80, LinearFitR2,
}
