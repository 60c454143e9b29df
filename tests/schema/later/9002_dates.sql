-- One that changes what sums are made of.

UPDATE events SET ts = ts + 3600000, answered = answered + 3600000;
UPDATE usage SET ts = ts + 3600000;
