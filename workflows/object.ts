import * as v from 'valibot'

/** Valibot's object, but that it refuses an array, which for Valibot is an object without keys. */
export function object<const E extends v.ObjectEntries>(entries: E) {
  const schema = v.object(entries, 'must be an object')
  return {
    ...schema,
    '~run'(dataset: v.UnknownDataset, config: v.Config<v.BaseIssue<unknown>>) {
      const given = Array.isArray(dataset.value) ? { value: 'an array' } : dataset
      return schema['~run'].call(this, given, config)
    },
  } as typeof schema
}
