type Parameters = Record<string, unknown>
type Node = { name: string; type: string; typeVersion?: number; parameters: Parameters } & Record<
  string,
  unknown
>

/**
 * An n8n document. Nodes are given by their names, with `type@version`. An arrow is `From:output -> To:input`; 0 can
 * be left out.
 */
export function createDocument(
  nodes: Record<string, [type: string, parameters?: Parameters, more?: Parameters]>,
  ...arrows: string[]
) {
  const list: Node[] = Object.entries(nodes).map(([name, [kind, parameters = {}, more = {}]], i) => {
    const [type, version] = kind.split('@')
    return {
      id: `id-${i}`,
      name,
      type: `n8n-nodes-base.${type}`,
      typeVersion: Number(version ?? 1),
      position: [i * 200, 0],
      parameters,
      ...more,
    }
  })
  const connections: Record<string, { main: object[][] }> = {}
  for (const arrow of arrows) {
    const [from = '', to = ''] = arrow.split(' -> ')
    const [source = '', output = '0'] = from.split(':')
    const [target = '', input = '0'] = to.split(':')
    connections[source] ??= { main: [] }
    const { main } = connections[source]
    while (main.length <= Number(output)) main.push([])
    main[Number(output)]!.push({ node: target, type: 'main', index: Number(input) })
  }
  return { name: 'A workflow', nodes: list, connections, settings: {} }
}

/** An Edit Fields node of version 3.4 that sets these fields to these expressions. */
export function editFields(values: Record<string, string>, includeOtherFields = false): [string, Parameters] {
  const assignments = Object.entries(values).map(([name, value]) => ({
    name,
    value: value.startsWith('=') ? value : `={{ ${value} }}`,
    type: 'any',
  }))
  return ['set@3.4', { assignments: { assignments }, includeOtherFields }]
}
