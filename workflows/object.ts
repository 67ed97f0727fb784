import * as v from 'valibot'

/**
 * Valibot's object schema, except that it refuses arrays; Valibot takes an array for an object without keys.
 */
export function strictObject<const E extends v.ObjectEntries>(entries: E) {
  return refuseArrays(v.object(entries, 'must be an object'))
}

/**
 * The entries of an object, each with what people are told about it: the forms, the JSON Schemas of the API and the
 * guide's readers all get it from here.
 */
export function described<const E extends v.ObjectEntries>(entries: E, help: { [K in keyof E]: string }): E {
  const said = Object.entries(entries).map(([key, schema]) => [
    key,
    v.pipe(schema as v.GenericSchema, v.description(help[key]!)),
  ])
  return Object.fromEntries(said) as E
}

/** Valibot's record schema with string keys, except that it refuses arrays. */
export function strictRecord<const V extends v.GenericSchema>(
  value: V,
  key: v.GenericSchema<string> = v.string(),
) {
  return refuseArrays(v.record(key, value, 'must be an object'))
}

/** Copies a schema of objects so that it refuses arrays. */
export function refuseArrays<const S extends v.GenericSchema>(schema: S): S {
  return {
    ...schema,
    '~run'(dataset: v.UnknownDataset, config: v.Config<v.BaseIssue<unknown>>) {
      if (!Array.isArray(dataset.value)) return schema['~run'].call(this, dataset, config)
      v._addIssue(schema as unknown as Parameters<typeof v._addIssue>[0], 'type', dataset, config)
      return dataset as unknown as v.OutputDataset<v.InferOutput<S>, v.BaseIssue<unknown>>
    },
  }
}
