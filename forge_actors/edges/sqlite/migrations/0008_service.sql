-- Effects that the last attempt of a job was kept from, as a JSON array.
ALTER TABLE job ADD COLUMN refused_effects TEXT;
CREATE INDEX job_refused_effects ON job (id) WHERE refused_effects IS NOT NULL;
