import { randomUUID } from 'node:crypto'
import { convertWorkflow } from '../../../workflows/n8n/convert.ts'
import { repairGraph } from '../../../workflows/n8n/repair.ts'
import { atOnce } from '../../support/atonce.ts'

type Find = (key: string) => string | undefined
const findNone: Find = () => undefined

/** Does what an import does, without storing the workflow. It finds what the document names by these. */
export function importDocument(raw: unknown, findWorkflow = findNone, findCredential = findNone) {
  const converted = atOnce(convertWorkflow(raw, findWorkflow, findCredential))
  if (!converted) return undefined
  const { report } = converted
  const repair = repairGraph(
    { ...converted, expressions: 2 },
    (problem) => void report.problems.push(problem),
    randomUUID,
  )
  const { graph, problems } = atOnce(repair)
  return { ...graph, problems, report }
}
