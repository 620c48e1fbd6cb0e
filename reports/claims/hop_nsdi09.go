package claims

// hopNSDI09 are the measures of "Block-switched Networks: A New Paradigm for
// Wireless Transport" (Li, Agrawal, Ganesan, Venkataramani, NSDI 2009).
var hopNSDI09 = []Measure{}
