import type { Tool } from '../../workflows/nodes/tools.ts'

/**
 * Whether a call of the tool may be made again when its outcome is unknown: it only reads, its other side recognises
 * it by its key, or its author says so. A sub-workflow is started once, a data table written
 * once, and each request of a connector sent once, in any case.
 */
export function repeatsTool(tool: Tool): boolean {
  switch (tool.type) {
    case 'HTTP':
      return tool.idempotent === true || tool.method === 'GET' || tool.method === 'HEAD'
    case 'DATABASE_QUERY':
      return tool.readOnly === true || tool.repeat === true
    case 'MCP':
      return tool.idempotent === true
    default:
      return true
  }
}
