import { objectOf, requireCredential } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { needService } from '../signins/services.ts'
import { isTemplate } from '../texts.ts'
import { readQuery } from './queries.ts'
import { readDeletion, readSelect } from './reading.ts'
import type { MappedSql } from './sqlparts.ts'
import { mapSupabase } from './supabase.ts'
import { QUIET } from './tools.ts'
import { readRowsToWrite } from './writing.ts'

/** Nodes of n8n that work with PostgreSQL, MySQL and Supabase. */
export const DATABASE_MAPPERS: Record<string, NodeMapper> = {
  postgres: mapDatabase,
  mySql: mapDatabase,
  supabase: mapSupabase,
}

function mapDatabase(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters } = node
  const { resource = 'database', operation = 'insert' } = parameters
  if (resource !== 'database') throw new Error(`Perdure has no "${String(resource)}" for it`)
  const { config, shape } = readOperation(node, tools, String(operation))
  reportRest(node, tools, String(operation))
  const credentialId = requireCredential(node, tools, needService(node, tools))
  return {
    ...mapEach('DATABASE_QUERY', { credentialId, ...config }),
    // n8n's nodes retry only if that is set.
    retry: { maxAttempts: 1 },
    shaper: {
      type: 'TRANSFORM',
      config: { expression: `$exists($item.error) ? $item : (${shape})` },
      perItem: true,
    },
  }
}

function readOperation(node: SourceNode, tools: MapperTools, operation: string): MappedSql {
  switch (operation) {
    case 'executeQuery':
      return readQuery(node, tools)
    case 'select':
      return readSelect(node)
    case 'deleteTable':
      return readDeletion(node)
    case 'insert':
    case 'update':
    case 'upsert':
      return readRowsToWrite(node, tools, operation)
  }
  throw new Error(`Perdure has no "${operation}" for it: write the statement with a DATABASE_QUERY`)
}

const READ = new Set([
  ...QUIET,
  ...['queryReplacement', 'treatQueryParametersInSingleQuotesAsText', 'outputColumns', 'skipOnConflict'],
  ...['replaceEmptyStrings', 'cascade', 'selectDistinct', 'queryParams', 'mode', 'ignore'],
])

function reportRest(node: SourceNode, { report }: MapperTools, operation: string): void {
  const { parameters, version } = node
  const key = node.type === 'postgres' && version < 2 ? 'additionalFields' : 'options'
  const options = objectOf(parameters[key])
  if (options.detailedOutput === true || isTemplate(options.detailedOutput))
    throw new Error(
      'it puts out the SQL with what came of it ("Output Query Execution Details"): do without that',
    )
  for (const [name, value] of Object.entries(options))
    if (!READ.has(name) && value !== '' && value !== false)
      reportMissingOption(report, `parameters.${key}.${name}`, value)
  const differs =
    'Values come as Perdure reads them: times without a zero at their end (2026-01-02T03:04:05Z), and whole numbers and ' +
    'decimals as numbers where n8n gives their text, if a number holds them. More than 10,000 rows are a failure.'
  report('parameter', 'parameters.operation', differs, operation)
  const each =
    'n8n carries out the statements of all items together, and answers once with {success: true} if they give no rows. ' +
    'Perdure carries out one for each item, and answers for each: if one fails, those before it stay.'
  report('items', 'parameters.operation', each, operation)
}
