import type { NodeMapper } from '../mapper.ts'
import { mapAirtable } from './airtable.ts'
import { mapNotion } from './notion.ts'

/** Nodes of services that are connectors here. */
export const CONNECTOR_MAPPERS: Record<string, NodeMapper> = {
  airtable: mapAirtable,
  notion: mapNotion,
}
