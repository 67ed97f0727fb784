type Parameters = Record<string, unknown>
type Node = { name: string; type: string; typeVersion?: number; parameters: Parameters } & Record<
  string,
  unknown
>

/** A node of n8n's in its export's form: `type@version`, its name that of the key. */
export function n8n(
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

/** Edit Fields 3.4 with these expressions. */
export function fields(values: Record<string, string>, includeOtherFields = false): [string, Parameters] {
  const assignments = Object.entries(values).map(([name, value]) => ({
    name,
    value: value.startsWith('=') ? value : `={{ ${value} }}`,
    type: 'any',
  }))
  return ['set@3.4', { assignments: { assignments }, includeOtherFields }]
}

/** The conditions of IF 2 and of Filter 2. */
export function when(leftValue: string, operation: string, rightValue: unknown, type = 'number') {
  return {
    conditions: {
      options: { typeValidation: 'strict', caseSensitive: true },
      conditions: [{ leftValue: `={{ ${leftValue} }}`, rightValue, operator: { type, operation } }],
      combinator: 'and',
    },
  }
}
