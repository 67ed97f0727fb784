import * as v from 'valibot'

/** Valibot's object, but that it refuses an array, which for Valibot is an object without keys. */
export function object<const E extends v.ObjectEntries>(entries: E) {
  return refuseArrays(v.object(entries, 'must be an object'))
}

/** Valibot's record of texts to such values, with the same exception. */
export function recordOf<const V extends v.GenericSchema>(
  value: V,
  key: v.GenericSchema<string> = v.string(),
) {
  return refuseArrays(v.record(key, value, 'must be an object'))
}

/** The schema of an object, without its mistake about arrays. */
export function refuseArrays<const S extends v.GenericSchema>(schema: S): S {
  return {
    ...schema,
    '~run'(dataset: v.UnknownDataset, config: v.Config<v.BaseIssue<unknown>>) {
      const given = Array.isArray(dataset.value) ? { value: 'an array' } : dataset
      return schema['~run'].call(this, given, config)
    },
  }
}
