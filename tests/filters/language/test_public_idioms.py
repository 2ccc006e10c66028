"""XPath as people write it: build files, web services, maps, feeds, style sheets, pages, test reports.

At least 95 of 100 are accepted; each of the others is refused with what to write instead. Those without a prefix are
held against lxml.
"""

from __future__ import annotations

import pytest
from lxml import etree

from earshot import Event, Filter
from earshot.errors import FilterSyntaxError

BUILD_FILES = """
/project/version
/project/parent/version/text()
/project/properties/*
/project/dependencies/dependency[scope='test']
/project/dependencies/dependency[groupId="junit" and artifactId="junit"]/version
//dependency[not(version)]
//dependency[artifactId[contains(., 'spring')]]
//*[local-name()='dependency']/*[local-name()='version']
/*[local-name()='project']/*[local-name()='version']/text()
//pom:dependency[pom:groupId='org.apache.maven']/pom:version
/m:project/m:build/m:plugins/m:plugin
//plugin[artifactId='maven-compiler-plugin']/configuration/source
count(/project/modules/module) > 1
//dependency[starts-with(groupId, 'org.spring')][not(scope='test')]
/beans/bean[@id='dataSource']/property[@name='url']/@value
//bean[@class='org.apache.commons.dbcp.BasicDataSource']
//b:bean[@id="sessionFactory"]//b:prop[@key='hibernate.dialect']
/configuration/appSettings/add[@key='Mode']/@value
//connectionStrings/add[@name="Main" and @providerName]
/Project/PropertyGroup/TargetFramework | /Project/PropertyGroup/TargetFrameworks
//PackageReference[@Include='Newtonsoft.Json']/@Version
/manifest/application/activity[intent-filter/action/@android:name='android.intent.action.MAIN']
/manifest/@package
//uses-permission[@android:name='android.permission.INTERNET']
/project/target[@name='build']/javac
//target[contains(concat(',', @depends, ','), ',init,')]
/web-app/servlet-mapping[servlet-name=../servlet/servlet-name]/url-pattern
//filter-mapping[last()]
/settings/servers/server[id = /settings/mirrors/mirror/id]
string(/project/artifactId) = 'demo'
""".strip().splitlines()

SERVICES = """
/soap:Envelope/soap:Body
/soapenv:Envelope/soapenv:Body/*[1]
/*[local-name()='Envelope']/*[local-name()='Body']/*
//*[local-name()='Fault']/*[local-name()='faultcode']/text()
//soap:Fault/faultstring
/SOAP-ENV:Envelope/SOAP-ENV:Header/wsse:Security/wsse:UsernameToken
//wsdl:service/wsdl:port/soap:address/@location
//xs:element[@name='order']/@type
//xsd:complexType[@name]/xsd:sequence/xsd:element[@minOccurs='0']
/wsdl:definitions/wsdl:portType/wsdl:operation[@name='GetQuote']
//ds:Signature/ds:SignedInfo/ds:Reference[@URI='']
//saml:Attribute[@Name='mail']/saml:AttributeValue
/*/*[local-name()='Body']/*[contains(local-name(), 'Response')]
//m:GetStockPrice/m:StockName[text() = 'GOOG']
/methodCall/params/param[1]/value/string
/methodResponse/fault/value/struct/member[name='faultCode']/value/int
//S:Body/*[namespace-uri()='urn:example']
/env:Envelope/env:Body/n:reservation[@xml:lang='en']
//Order[@status='open']/Item[Quantity * Price > 100]
sum(//Item/Price) > 1000
count(//Order[Total > 500]) >= 2
/Order/Customer[normalize-space(Name) != '']
//Item[not(@sku = preceding-sibling::Item/@sku)]
//Order[Date >= 20200101]
/invoice[total = sum(line/amount)]
""".strip().splitlines()

MAPS_AND_FEEDS = """
//Placemark/name
//kml:Placemark[kml:name='Home']/kml:Point/kml:coordinates
/kml/Document/Folder/Placemark[Point]
//*[local-name()='Placemark'][*[local-name()='name']='Home']
//Placemark/name[./text()='east am']
/gpx/trk/trkseg/trkpt[@lat > 47 and @lat < 48]
//gpx:trkpt[last()]/gpx:time
count(//trkpt) > 100
//trkpt[ele > 1500]
/gpx/wpt[@lat and @lon]/name
//wpt[not(ele)]
/osm/node[tag[@k='amenity' and @v='parking']]
/osm/way[nd/@ref = /osm/node/@id]
//way[tag/@k='highway'][count(nd) > 5]
//node[tag[@k='name'][starts-with(@v, 'St')]]
/rss/channel/item/title
/rss/channel/item[position() <= 10]/link
//item[contains(title, 'Python')]
//item[category='sport' or category='news']/description
/rss/channel/item[pubDate][1]/guid[@isPermaLink='true']
/atom:feed/atom:entry/atom:link[@rel='alternate']/@href
//entry[author/name='Ann']/summary
/feed/entry[1]/following-sibling::entry
//media:content[@medium='image']/@url
//dc:creator/text()
/opml/body//outline[@xmlUrl]
//itunes:duration[string-length(.) > 5]
/alert/info[severity='Extreme' and urgency='Immediate']/area/polygon
//cap:info[cap:language='en-US']/cap:headline
/weather/forecast/day[temp > 30][1]
//station[@id='42']/observation[last()]/wind[speed >= 20]
/train[delay > ../train/delay]
/traffic/incident[@type='jam' or @type='accident']/location
//vehicle[speed > 10]/position[@x >= 0 and @x <= 500]
/a:Feature/a:geometry/a:Point
""".strip().splitlines()

STYLE_SHEETS = """
/bookstore/book[1]
/bookstore/book[last()]
/bookstore/book[last()-1]
/bookstore/book[position()<3]
//title[@lang='en']
//title[@*]
/bookstore/book[price>35.00]/title
//book/title | //book/price
//book[author='J K. Rowling' and year=2005]
//book[not(@category='web')]/author
//chapter[count(section) > 3]/title
//section[ancestor::chapter[@id='intro']]
//para[following-sibling::note]
//note/preceding-sibling::para[1]
//figure[generate-id() = 'x']
//row[position() mod 2 = 0]
//xsl:template[@match='/']
/xsl:stylesheet/xsl:import/@href
//text()[normalize-space()]
//node()[self::para or self::note]
//footnote[substring-before(@id, '-') = 'fn']
//person[string-length(name) > 20]
//employee[salary > //manager/salary]
//employee[translate(name, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')='ANN']
//cd[round(price) = 10]
//order[floor(total div 10) = 3]
//entry[number(@count) = number(@count)]
//key[not(. = following::key)]
/descendant::figure[3]
/child::book/child::chapter[position() = 5]/child::section[position() = 2]
//chapter[child::title = 'Introduction']
//para[attribute::type="warning"][5]
/descendant-or-self::node()/child::para
//item[@id = $wanted]
//comment()
""".strip().splitlines()

PAGES_AND_REPORTS = """
//a/@href
//div[@class='content']//p
//div[contains(@class, 'item')]/a[1]
//div[contains(concat(' ', normalize-space(@class), ' '), ' active ')]
//*[@id='main']/div[2]/table/tr[3]/td
//table[@id='data']//tr[td[1]='Total']/td[2]
//td[text()='Price']/following-sibling::td[1]
//h2[contains(text(),'Results')]/following::table[1]
//span[normalize-space(text())='Next']/parent::a
//input[@type='hidden' and @name='csrf']/@value
//a[contains(@href, '.pdf') and not(contains(@href, 'draft'))]
//label[text()='Name']/../input
//ul/li[last()]/a
(//div[@class='row'])[1]
(//a[@rel='next'])[last()]/@href
//img[not(@alt)]
//option[@selected]/text()
//form[@action]//input[not(@type='submit')]
//meta[@property='og:title']/@content
//link[@rel='stylesheet'][1]/@href
//p[string-length(normalize-space()) > 0]
//tr[count(td) = 4]
//div[@id and @class]/*[self::h1 or self::h2]
//*[starts-with(@id, 'result_')]
//button[.='OK']
//td[. > 100]
//li[position() > 1 and position() < last()]
/html/body/div[1]/div/div[2]/span
//testsuite[@failures > 0 or @errors > 0]
//testcase[failure]/@name
count(//testcase[not(skipped)]) > 0
/testsuites/testsuite/testcase[@time > 1.5]
""".strip().splitlines()

EXPRESSIONS = [*BUILD_FILES, *SERVICES, *MAPS_AND_FEEDS, *STYLE_SHEETS, *PAGES_AND_REPORTS]

DOCUMENTS = [
    "<project><version>1</version><dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId>"
    "<scope>test</scope></dependency></dependencies><modules><module/><module/></modules></project>",
    "<Order status='open'><Item sku='1'><Quantity>3</Quantity><Price>50</Price></Item><Total>600</Total></Order>",
    "<rss><channel><item><title>Python news</title><category>news</category><link>x</link></item></channel></rss>",
    "<bookstore><book category='web'><title lang='en'>A</title><price>39</price></book><book><title>B</title>"
    "<price>10</price></book></bookstore>",
    "<html><body><div class='row active' id='main'><a href='x.pdf' rel='next'>1</a><table><tr><td>Price</td>"
    "<td>120</td></tr></table></div><ul><li>1</li><li>2</li><li>3</li></ul></body></html>",
    "<testsuites><testsuite failures='1'><testcase name='t' time='2'><failure/></testcase></testsuite></testsuites>",
]


def accepted(text: str) -> Filter | None:
    try:
        return Filter.xpath(text)
    except FilterSyntaxError:
        return None


def test_at_least_95_of_100_are_accepted() -> None:
    refused = [text for text in EXPRESSIONS if accepted(text) is None]
    assert len(EXPRESSIONS) >= 155
    assert len(refused) <= 0.05 * len(EXPRESSIONS), refused


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_accepted_expression_means_what_lxml_says(text: str) -> None:
    filter = accepted(text)
    if filter is None:
        return
    assert Filter.parse(str(filter)) == filter
    prefixed = ":" in text.replace("::", "")
    for document in DOCUMENTS:
        matched = filter.matches(Event.from_xml(document))
        if not prefixed:
            assert matched == etree.XPath(f"boolean({text})")(etree.ElementTree(etree.fromstring(document))), document
